"""Artifacts of what candidates become on a card: one record a workload, one a kernel, and what was compiled, raw."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from solbench.code.compiling import Launch, Limits, Recorded, record_triton, toolchain
from solbench.code.launchable import evidence_of, why_not
from solbench.errors import InputError
from solbench.model.code import KERNEL_SCHEMA, SCHEMA, Code, Kernel, LaunchFacts
from solbench.model.definition import Definition
from solbench.model.solution import Solution
from solbench.model.workload import Workload
from solbench.store import Descriptor, encode

LIMITS = Limits()
# Reference or fault by (kernel, code object, assembly, what its launch adds).
Known = dict[tuple[str, str, str, LaunchFacts], tuple[dict[str, Any] | None, str | None]]


def compiled(
    definition: Mapping[str, Any],
    solution: Mapping[str, Any],
    instances: Sequence[Mapping[str, Any]],
    target: str,
    limits: Limits = LIMITS,
) -> dict[str, Any]:
    """What a Triton solution becomes for every workload of its problem on ``target``, as plain JSON.

    ``instances``: ``workload`` artifacts. The result: ``code``, a :class:`Code` a workload; ``kernels``, artifacts by
    digest; ``files``, bytes in base64 by the BLAKE3 (hex) of the bytes, code objects and assemblies alike; ``logs``,
    the last lines by workload where something was wrong: they may be others next time, and are in no artifact.
    """
    problem = Definition.load(_body(definition), "definition")
    candidate = Solution.load(_body(solution), "solution")
    read = [(Workload.load(instance["workload"], "workload"), instance["axes"]) for instance in instances]
    recorded, files = record_triton(problem, candidate, read, target, limits)
    return artifacts(candidate, instances, target, recorded, files, toolchain())


def artifacts(
    solution: Solution,
    instances: Sequence[Mapping[str, Any]],
    target: str,
    recorded: Iterable[Recorded],
    files: Mapping[str, bytes],
    compiler: Mapping[str, Any],
) -> dict[str, Any]:
    """As :func:`compiled`, of what was compiled before: a :class:`Recorded` an instance, in that order."""
    known: Known = {}
    kernels: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    codes = []
    candidate = Descriptor.of("solution", encode("solution", solution.as_dict())).as_dict()
    told = tuple(recorded)
    for instance, one in zip(instances, told, strict=True):
        launches: list[dict[str, Any]] = []
        for launch in one.launches:
            found, fault = _kernel(launch, target, files, known, kernels, used)
            _count(launches, {
                "kernel": launch.kernel, "config": launch.config, "grid": launch.grid, "stages": launch.stages,
                "arguments": launch.arguments, "constexprs": launch.constexprs, "evidence": found, "fault": fault,
            })  # fmt: skip
        status, reason = one.status, one.reason
        shown = {digest: kernel["evidence"] for digest, kernel in kernels.items()}
        if status == "COMPILED" and (why := why_not(launches, shown)) is not None:
            status, reason = "RUNTIME_ERROR", why
        fields = {
            "schema": SCHEMA, "problem": instance["problem"], "workload": one.workload, "solution": solution.name,
            "target": target, "instance": Descriptor.of("workload", encode("workload", _body(instance))).as_dict(),
            "candidate": candidate, "toolchain": compiler, "status": status, "reason": reason, "launches": launches,
            "library_calls": one.library_calls,
        }  # fmt: skip
        codes.append(Code.load(fields, f"{instance['problem']}/{one.workload}").as_dict())
    kept = {digest: base64.b64encode(files[digest]).decode() for digest in sorted(used)}
    logs = {one.workload: one.log for one in told if one.log}
    return {"code": codes, "kernels": kernels, "files": kept, "logs": logs}


def _kernel(
    launch: Launch, target: str, files: Mapping[str, bytes], known: Known, kernels: dict[str, dict[str, Any]],
    used: set[str],
) -> tuple[dict[str, Any] | None, str | None]:  # fmt: skip
    """Reference to the kernel's artifact, or the fault in place of it."""
    if launch.fault is not None or launch.code_object is None or launch.assembly is None or launch.threads is None:
        return None, launch.fault or "it was not compiled"
    facts = LaunchFacts(threads=launch.threads, dynamic_lds_bytes=launch.dynamic_lds_bytes or 0, dots=launch.dots)
    key = launch.kernel, launch.code_object, launch.assembly, facts
    if key not in known:
        code, text = files[launch.code_object], files[launch.assembly]
        try:
            shown = evidence_of(code, text, launch.kernel, target, facts)
        except InputError as error:
            known[key] = None, f"what was compiled cannot be read: {error}"
            return known[key]
        fields = {
            "schema": KERNEL_SCHEMA, "kernel": launch.kernel, "target": target, "launch": facts, "evidence": shown,
            "code_object": Descriptor.of("code-object", code).as_dict(),
            "assembly": Descriptor.of("assembly", text).as_dict(),
        }  # fmt: skip
        artifact = Kernel.load(fields, launch.kernel).as_dict()
        descriptor = Descriptor.of("kernel", encode("kernel", artifact))
        kernels[descriptor.digest] = artifact
        used.update((launch.code_object, launch.assembly))
        known[key] = descriptor.as_dict(), None
    return known[key]


def _count(launches: list[dict[str, Any]], launch: dict[str, Any]) -> None:
    """Add a launch, or count it with the one that is like it."""
    for other in launches:
        if all(other[name] == value for name, value in launch.items()):
            other["count"] += 1
            return
    launches.append({**launch, "count": 1})


def _body(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name != "kind"}
