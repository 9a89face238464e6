"""What a release states of candidates' code: that records, kernels and workloads belong together, and that evidence is
what code object and assembly show, derived again without a compiler.

What a compiler would make of the sources today is not asked here: `solbench compile` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from solbench.errors import InputError
from solbench.model.code import LaunchFacts
from solbench.release.findings import Findings
from solbench.release.schemas import same
from solbench.store import RAW_KINDS, Descriptor

# Code objects and assembly, again for each kernel: a hundred times what a release of 45 problems holds.
MAX_EXAMINED_BYTES = 1 << 30
Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]
Read = Callable[[Descriptor], bytes]


def cross_references(sections: Sections, load: Load) -> Iterator[tuple[str, object, object]]:
    """(name, expected, found) for each entry of the section that does not belong where it stands."""
    code = sections["code"]
    for name, entry in code.items():
        where = f"code: {name}"
        if entry.kind in ("kernel", *RAW_KINDS):
            if name != f"{entry.kind}/{entry.digest.removeprefix('blake3:')}":
                yield where, f"{entry.kind}/ and its own digest", name
            if entry.kind == "kernel":
                artifact = load("code", entry)
                for stated in (artifact["code_object"], artifact["assembly"]):
                    beside = code.get(f"{stated['kind']}/{str(stated['digest']).removeprefix('blake3:')}")
                    if beside is None or beside.as_dict() != stated:
                        yield where, f"its {stated['kind']} in the release", stated["digest"]
            continue
        workload, _, rest = name.rpartition("/")
        solution, _, target = rest.rpartition("@")
        problem, _, uuid = workload.rpartition("/")
        instance = sections["workloads"].get(workload)
        candidate = sections["corpus"].get(f"{problem}/solutions/{solution}")
        if entry.kind != "code" or instance is None or candidate is None:
            yield where, "the code of a solution for a workload of the release", entry.kind
            continue
        artifact = load("code", entry)
        expected = {
            "problem": problem, "workload": uuid, "solution": solution, "target": target,
            "instance": instance.as_dict(), "candidate": candidate.as_dict(),
        }  # fmt: skip
        for field, value in expected.items():
            if artifact[field] != value:
                yield f"{where}: {field}", value, artifact[field]
        for launch in artifact["launches"]:
            yield from _launch(where, launch, artifact, code, load)


def _launch(
    where: str, launch: Mapping[str, Any], artifact: Mapping[str, Any], code: Mapping[str, Descriptor], load: Load
) -> Iterator[tuple[str, object, object]]:
    stated = launch["evidence"]
    if stated is None:
        return
    entry = code.get(f"kernel/{str(stated['digest']).removeprefix('blake3:')}")
    if entry is None or entry.as_dict() != stated:
        yield f"{where}: {launch['kernel']}", "a kernel of the release", stated["digest"]
        return
    kernel = load("code", entry)
    if (kernel["kernel"], kernel["target"]) != (launch["kernel"], artifact["target"]):
        yield (
            f"{where}: {launch['kernel']}",
            (launch["kernel"], artifact["target"]),
            (kernel["kernel"], kernel["target"]),
        )


def evidence(sections: Sections, load: Load, read: Read, findings: Findings) -> int:
    """Every kernel's evidence from its code object and assembly, and each record's status from it; how many kernels.

    ``read``: bytes of a raw object. After :data:`MAX_EXAMINED_BYTES` the rest is undecided.
    """
    code = sections["code"]
    if not code:
        return 0
    # Only here: what reads code takes a while to import.
    from solbench.code.launchable import WOULD_NOT_LAUNCH, evidence_of, why_not

    shown: dict[str, Mapping[str, Any]] = {}
    examined = 0
    for name, entry in sorted(code.items()):
        if entry.kind != "kernel":
            continue
        artifact = load("code", entry)
        raw = [_descriptor(artifact[field]) for field in ("code_object", "assembly")]
        facts = LaunchFacts.load(artifact["launch"], name)
        examined += sum(each.size for each in raw)
        if examined > MAX_EXAMINED_BYTES:  # before they are read
            findings.add("code", "limit-total", f"code: {name}", MAX_EXAMINED_BYTES)
            break
        try:
            found = evidence_of(read(raw[0]), read(raw[1]), artifact["kernel"], artifact["target"], facts)
        except InputError as error:
            findings.add("code", "evidence-mismatch", f"code: {name}", "evidence", error)
            continue
        shown[entry.digest] = found
        stated = artifact["evidence"]
        for field in sorted(found.keys() | stated.keys()):
            if (field in found) != (field in stated) or not same(found.get(field), stated.get(field)):
                findings.add(
                    "code", "evidence-mismatch", f"code: {name}: {field}", found.get(field), stated.get(field)
                )  # fmt: skip
    for name, entry in sorted(code.items()):
        if entry.kind == "code":
            artifact = load("code", entry)
            launches = artifact["launches"]
            if any(one["evidence"] is not None and one["evidence"]["digest"] not in shown for one in launches):
                continue  # a finding names that kernel already
            why = why_not(launches, shown)
            stated = artifact["status"] if artifact["reason"] is None else f"{artifact['status']}: {artifact['reason']}"
            if artifact["status"] == "COMPILED" and why is not None:
                findings.add("code", "evidence-mismatch", f"code: {name}: status", f"RUNTIME_ERROR: {why}", stated)
            elif WOULD_NOT_LAUNCH in str(artifact["reason"]) and artifact["reason"] != why:
                expected = why or "kernels that would launch"
                findings.add("code", "evidence-mismatch", f"code: {name}: status", expected, stated)
    return len(shown)


def _descriptor(reference: Mapping[str, Any]) -> Descriptor:
    return Descriptor(reference["kind"], reference["digest"], reference["size"])
