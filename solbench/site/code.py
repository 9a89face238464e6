"""What a problem's candidates become on a card, as a page shows it: a row a record, and each kernel once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solbench.model.code import Code, Kernel
from solbench.site import text
from solbench.site.cells import Ref, ref
from solbench.site.links import Links
from solbench.site.records import Book, ProblemRecords, Record, WorkloadRecords
from solbench.store import Descriptor

# Instructions that say nothing of what a kernel spends.
_QUIET = frozenset({"branch", "cache", "end", "hint", "message"})


def sections(
    book: Book, links: Links, problem: ProblemRecords, heads: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One a target for which there is code, with its rows and kernels."""
    found = []
    for target in book.targets:
        rows: list[dict[str, Any]] = []
        kernels: dict[str, dict[str, Any]] = {}
        for workload in problem.workloads:
            for record in workload.code.get(target.name, ()):
                rows.append(_row(book, links, workload, target.name, record, heads[workload.uuid], kernels))
        if rows:
            tools = {_tool(record.value) for w in problem.workloads for record in w.code.get(target.name, ())}
            found.append(
                {
                    "target": target.name,
                    "tools": text.listed(sorted(tools)),
                    "rows": rows,
                    "kernels": list(kernels.values()),
                }
            )
    return found


def _tool(code: Code) -> str:
    parts = (str(code.toolchain.get(name, "")).partition("\n")[0] for name in ("compiler", "version"))
    return " ".join(part for part in parts if part)


def _row(
    book: Book, links: Links, workload: WorkloadRecords, target: str, record: Record[Code], head: Mapping[str, Any],
    kernels: dict[str, dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """One candidate on one workload; kernels that are new get their number here."""
    used: dict[str, dict[str, Any]] = {}
    for launch in record.value.launches:
        if launch.evidence is None:
            continue
        kernel = book.kernels[launch.evidence.digest]
        known = kernels.get(launch.evidence.digest)
        if known is None:
            known = _kernel(links, kernel, len(kernels) + 1, launch.constexprs)
            kernels[launch.evidence.digest] = known
        used[launch.evidence.digest] = known
    faults = sum(launch.fault is not None for launch in record.value.launches)
    formats = sorted({name for digest in used for name in _products(book.kernels[digest].value)})
    calls = record.value.library_calls or {}
    return {
        "record": record.name,
        "head": head,
        "solution": record.value.solution,
        "status": record.value.status,
        "reason": record.value.reason or "",
        "tuned": any(launch.config is not None for launch in record.value.launches),
        "kernels": list(used.values()),
        "faults": faults,
        "assumed": _assumed(workload, target),
        "formats": text.listed(formats) or "no products",
        "calls": text.listed(f"{name} ({count}×)" for name, count in calls.items()),
        "ref": ref(links, f"code of {record.value.solution}", record.descriptor),
    }


def _assumed(workload: WorkloadRecords, target: str) -> str:
    """Formats in which the bound prices products: as the matrix engine's terms say."""
    bound = workload.bounds.get(target)
    if bound is None or bound.value.result is None:
        return "no bound"
    return text.listed(t.mode for t in bound.value.result.compute if t.engine == "matrix") or "no products"


def _products(kernel: Kernel) -> list[str]:
    """Formats of the matrix instructions; products in the source that became none are named as what they are."""
    mix = kernel.evidence["mix"]
    formats = [f"{name} WMMA" for name in mix["wmma"]] if mix is not None else []
    if not formats and kernel.launch.dots:
        formats = [f"{a} on the vector units" for a in sorted({dot[0] for dot in kernel.launch.dots})]
    return formats


def _kernel(links: Links, record: Record[Kernel], number: int, constants: Mapping[str, Any]) -> dict[str, Any]:
    """``constants``: of a launch that it was compiled for."""
    kernel = record.value
    evidence = kernel.evidence
    resources, waves, mix = evidence["resources"], evidence["occupancy"], evidence["mix"]
    spills = [resources["vgpr_spills"], resources["sgpr_spills"]]
    pairs = [
        ("work-group", f"{text.grouped(kernel.launch.threads)} threads"),
        ("registers a wave", f"{resources['vgprs']} VGPRs, {resources['sgprs']} SGPRs"),
        ("spilled", " and ".join("untold" if spill is None else str(spill) for spill in spills) + " (VGPRs, SGPRs)"),
        ("LDS a work-group", f"{text.grouped(resources['lds_bytes'])} B"),
        ("scratch a lane", f"{text.grouped(resources['scratch_bytes'])} B"),
    ]
    if waves is not None:
        limits = text.listed(waves["limited_by"])
        pairs.append(("waves a SIMD", f"{waves['waves_per_simd']} of 16, limited by {limits}"))
    if mix is not None:
        pairs.append(("instructions", _counts({name: count["written"] for name, count in mix["engines"].items()})))
        for kind in ("global_load", "global_store"):
            widths = mix["widths"].get(kind)
            if widths:
                shown = text.listed(f"{count['written']} of {bits} bits" for bits, count in widths.items())
                pairs.append((kind.replace("_", " ") + "s", shown))
    return {
        "number": number,
        "anchor": f"k-{kernel.target}-{number}",
        "name": kernel.kernel,
        "constants": text.listed(f"{name} {value}" for name, value in constants.items()),
        "pairs": pairs,
        "loops": [_loop(loop) for loop in evidence["loops"] or ()],
        "findings": [_finding(finding) for finding in evidence["findings"]],
        "worst": _worst(evidence["findings"]),
        "objects": _objects(links, record),
    }


def _objects(links: Links, record: Record[Kernel]) -> list[Ref]:
    raw = ("code object", record.value.code_object), ("assembly", record.value.assembly)
    return [
        ref(links, "evidence", record.descriptor),
        *(ref(links, label, Descriptor(entry.kind, entry.digest, entry.size)) for label, entry in raw),
    ]


def _loop(loop: Mapping[str, Any]) -> dict[str, str]:
    return {
        "lines": f"{loop['first_line']}–{loop['last_line']}",
        "depth": str(loop["depth"]),
        "trips": "unknown" if loop["trips"] is None else text.grouped(loop["trips"]),
        "engines": _counts(loop["engines"]),
    }


def _finding(finding: Mapping[str, Any]) -> dict[str, str]:
    return {
        "severity": finding["severity"],
        "text": finding["text"],
        "lines": text.listed(map(str, finding["evidence"])),
        "source": text.listed(finding["source"]),
    }


def _worst(findings: Sequence[Mapping[str, Any]]) -> str:
    """The severities of a kernel's findings, counted, the worst first."""
    counts = {level: sum(each["severity"] == level for each in findings) for level in ("fails launch", "slow", "note")}
    return text.listed(f"{count} {level}" for level, count in counts.items() if count)


def _counts(counts: Mapping[str, int]) -> str:
    return text.listed(f"{name} {text.grouped(count)}" for name, count in counts.items() if name not in _QUIET)
