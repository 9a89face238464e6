"""A candidate of any language that is compiled for a card: Triton through its host code, HIP from its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solbench import canonical
from solbench.code.artifacts import artifacts, compiled
from solbench.code.compiling import Launch, Limits, Recorded
from solbench.code.targets import device
from solbench.errors import UnsupportedError
from solbench.evaluate.identity import workload_artifact
from solbench.model.solution import Solution
from solbench.model.workload import Workload

if TYPE_CHECKING:
    from solbench.code.hip_code import HipCode
    from solbench.corpus.load import Problem

LIMITS = Limits()


def compile_solution(
    problem: Problem, solution: Solution, workloads: Sequence[Workload], target: str, limits: Limits = LIMITS
) -> dict[str, Any]:
    """What ``solution`` becomes for ``workloads``, as :func:`solbench.code.artifacts.compiled` returns it.

    :class:`UnsupportedError` for an unknown target, a language that compiles to no code for it, or without a compiler.
    """
    device(target)
    instances = [workload_artifact(problem, workload) for workload in workloads]
    languages = solution.spec.languages
    if "triton" in languages:
        return compiled(problem.definition.as_dict(), solution.as_dict(), instances, target, limits=limits)
    if "hip_cpp" in languages:
        return _hip(solution, instances, target, limits)
    raise UnsupportedError(f"{solution.name}: {', '.join(languages)} compiles to no code of its own for {target}")


def _hip(solution: Solution, instances: Sequence[Mapping[str, Any]], target: str, limits: Limits) -> dict[str, Any]:
    from solbench.code import hip
    from solbench.evaluate.build import BuildFailure

    try:
        built = hip.compile_hip(solution, target, limits.timeout_s)
    except BuildFailure as failure:
        if failure.status != "COMPILE_ERROR":
            raise UnsupportedError(failure.reason) from None
        recorded = [
            Recorded(instance["workload"]["uuid"], "COMPILE_ERROR", reason=failure.reason, log=failure.log)
            for instance in instances
        ]
        return artifacts(solution, instances, target, recorded, {}, hip.toolchain(target))
    launches, files = launches_of(built)
    recorded = [Recorded(instance["workload"]["uuid"], "COMPILED", launches) for instance in instances]
    return artifacts(solution, instances, target, recorded, files, built.compiler)


def launches_of(built: HipCode) -> tuple[tuple[Launch, ...], dict[str, bytes]]:
    """Kernels of HIP code with the work-group that their launch bounds allow; grids and arguments are the host's."""
    from solbench.code.kernels import read

    launches: list[Launch] = []
    files: dict[str, bytes] = {}
    for unit in built.units:
        text = unit.assembly.encode()
        code_object, assembly = (canonical.digest(data).removeprefix("blake3:") for data in (unit.code, text))
        files |= {code_object: unit.code, assembly: text}
        for kernel in read(unit.code, unit.source).kernels.values():
            launches.append(
                Launch(
                    kernel=kernel.name, config=None, threads=kernel.max_threads, dynamic_lds_bytes=0,
                    code_object=code_object, assembly=assembly,
                )
            )  # fmt: skip
    return tuple(launches), files
