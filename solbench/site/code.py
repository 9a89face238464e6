"""What candidates become on a card, as pages show it: a row a record, and below a workload each of its kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from solbench.errors import IntegrityError
from solbench.model.code import Code, Kernel
from solbench.site import text
from solbench.site.cells import Ref, ref
from solbench.site.links import Links
from solbench.site.records import Book, ProblemRecords, Record, TargetRecords, WorkloadRecords
from solbench.store import Descriptor

# Instructions that say nothing of what a kernel spends.
_QUIET = frozenset({"branch", "cache", "end", "hint", "message"})
# So many lines of the assembly stand on a page; all of them are in the object.
EXCERPT = 40


def rows(
    book: Book, links: Links, problem: ProblemRecords, workload: WorkloadRecords, target: TargetRecords
) -> list[dict[str, Any]]:
    """One a record of a workload's code for ``target``."""
    return [_row(book, links, problem, workload, target.name, record) for record in workload.code.get(target.name, ())]


def tools(records: Iterable[Record[Code]]) -> str:
    """Compilers that made the code, with versions."""
    found = set()
    for record in records:
        toolchain = record.value.toolchain
        parts = (str(toolchain.get(name, "")).partition("\n")[0] for name in ("compiler", "version"))
        found.add(" ".join(part for part in parts if part))
    return text.listed(sorted(found))


def kernels(book: Book, links: Links, workload: WorkloadRecords, target: TargetRecords) -> list[dict[str, Any]]:
    """Each kernel of a workload's candidates once, in the order of their numbers."""
    found = []
    for digest, number in _numbers(workload, target.name).items():
        constants = next(
            launch.constexprs
            for record in workload.code[target.name]
            for launch in record.value.launches
            if launch.evidence is not None and launch.evidence.digest == digest
        )
        found.append(_kernel(links, book.kernels[digest], number, constants))
    return found


def _numbers(workload: WorkloadRecords, target: str) -> dict[str, int]:
    """Numbers of a workload's kernels by the digest of their evidence, from 1, as its records use them."""
    numbers: dict[str, int] = {}
    for record in workload.code.get(target, ()):
        for launch in record.value.launches:
            if launch.evidence is not None:
                numbers.setdefault(launch.evidence.digest, len(numbers) + 1)
    return numbers


def _row(
    book: Book, links: Links, problem: ProblemRecords, workload: WorkloadRecords, target: str, record: Record[Code]
) -> dict[str, Any]:
    """One candidate on one workload, its kernels with links to where the workload's page shows them."""
    numbers = _numbers(workload, target)
    used = {launch.evidence.digest for launch in record.value.launches if launch.evidence is not None}
    shown = [
        {
            "number": numbers[digest],
            "name": book.kernels[digest].value.kernel,
            "worst": _worst(book.kernels[digest].value.evidence["findings"]),
            "href": links.page("workload", workload.record.name, _anchor(target, numbers[digest])),
        }
        for digest in sorted(used, key=numbers.__getitem__)
    ]
    faults = sum(launch.fault is not None for launch in record.value.launches)
    formats = sorted({name for digest in used for name in _products(book.kernels[digest].value)})
    calls = record.value.library_calls or {}
    return {
        "record": record.name,
        "solution": record.value.solution,
        "solution_href": links.page("solution", f"{problem.key}/solutions/{record.value.solution}"),
        "status": record.value.status,
        "reason": record.value.reason or "",
        "tuned": any(launch.config is not None for launch in record.value.launches),
        "kernels": shown,
        "faults": faults,
        "assumed": _assumed(workload, target),
        "formats": text.listed(formats) or "no products",
        "calls": text.listed(f"{name} ({count}×)" for name, count in calls.items()),
        "ref": ref(links, f"code of {record.value.solution}", record.descriptor),
    }


def _anchor(target: str, number: int) -> str:
    return f"k-{target}-{number}"


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
        # Nothing limits what cannot be launched at all.
        limits = text.listed(waves["limited_by"])
        why = f"limited by {limits}" if limits else "it cannot be launched"
        pairs.append(("waves a SIMD", f"{waves['waves_per_simd']} of 16, {why}"))
    if mix is not None:
        pairs.append(("instructions", _counts({name: count["written"] for name, count in mix["engines"].items()})))
        for kind in ("global_load", "global_store"):
            widths = mix["widths"].get(kind)
            if widths:
                shown = text.listed(f"{count['written']} of {bits} bits" for bits, count in widths.items())
                pairs.append((kind.replace("_", " ") + "s", shown))
    return {
        "number": number,
        "anchor": _anchor(kernel.target, number),
        "name": kernel.kernel,
        "constants": text.listed(f"{name} {value}" for name, value in constants.items()),
        "pairs": pairs,
        "loops": [_loop(loop) for loop in evidence["loops"] or ()],
        "findings": [_finding(finding) for finding in evidence["findings"]],
        "worst": _worst(evidence["findings"]),
        "excerpt": _excerpt(links, kernel),
        "objects": _objects(links, record),
    }


def _excerpt(links: Links, kernel: Kernel) -> dict[str, Any]:
    """The lines of the assembly that matter most: of the first finding, else of the innermost loop, else the first."""
    raw = Descriptor(kernel.assembly.kind, kernel.assembly.digest, kernel.assembly.size)
    try:
        lines = links.objects.read(raw).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise IntegrityError(f"{raw.digest}: assembly is not UTF-8") from None
    evidence = kernel.evidence
    findings = [finding for finding in evidence["findings"] if finding["evidence"]]
    loops = sorted(evidence["loops"] or (), key=lambda loop: (-loop["depth"], loop["first_line"]))
    if findings:
        first, why = max(findings[0]["evidence"][0] - 6, 1), f"around the first of: {findings[0]['text']}"
    elif loops:
        first, why = loops[0]["first_line"], "the innermost loop from its first line"
    else:
        body = next((i for i, line in enumerate(lines, 1) if line.startswith(f"{kernel.kernel}:")), 1)
        first, why = body, "from the kernel’s first line"
    last = min(first + EXCERPT - 1, loops[0]["last_line"] if loops and not findings else len(lines), len(lines))
    width = len(str(last))
    chosen = [f"{number:>{width}}  {lines[number - 1].expandtabs(8)}".rstrip() for number in range(first, last + 1)]
    return {
        "why": why,
        "which": f"lines {first} to {last} of {text.grouped(len(lines))}",
        "text": text.Lines("\n".join(chosen)),
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
