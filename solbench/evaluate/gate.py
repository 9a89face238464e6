"""What would not launch on the card is not launched: code is looked at first, where a target's code is examined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from solbench.code import kernels, occupancy
from solbench.code.launchable import why_not
from solbench.code.targets import DEVICES
from solbench.corpus.load import Problem
from solbench.device import codeobject
from solbench.errors import InputError, SolbenchError
from solbench.evaluate.identity import workload_artifact
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.workload import Workload


@dataclass(frozen=True)
class Looked:
    """``refused``: why a workload's call would fail, by its uuid. ``labels``: what a trace's reader should know."""

    refused: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


def look(session: Session, problem: Problem, solution: Solution, workloads: Sequence[Workload], target: str) -> Looked:
    """Look at the code of a candidate that is built, if it needs building.

    Triton's is compiled as ``solbench compile`` does; where that does not work here, the run itself will tell, and a
    label says so. Nothing for other targets and languages.
    """
    if target not in DEVICES:
        return Looked()
    if "hip_cpp" in solution.spec.languages:
        why = refused_library(session.library(solution), target)
        return Looked(dict.fromkeys((workload.uuid for workload in workloads), why) if why else {})
    if "triton" not in solution.spec.languages:
        return Looked()
    from solbench.code.artifacts import compiled
    from solbench.code.compiling import Limits

    instances = [workload_artifact(problem, workload) for workload in workloads]
    limits = Limits(timeout_s=session.limits.compile_s)
    try:
        found = compiled(problem.definition.as_dict(), solution.as_dict(), instances, target, limits=limits)
    except SolbenchError as error:
        return Looked(labels=(f"code: not examined before launch ({error})",))
    shown = {digest: kernel["evidence"] for digest, kernel in found["kernels"].items()}
    refused: dict[str, str] = {}
    unknown = 0
    for code in found["code"]:
        why = why_not(code["launches"], shown)
        if why is not None and (code["status"], code["reason"]) == ("RUNTIME_ERROR", why):
            refused[code["workload"]] = why
        elif code["status"] != "COMPILED":
            unknown += 1
    labels = (f"code: not examined before launch in {unknown} of {len(workloads)} workloads",) if unknown else ()
    return Looked(refused, labels)


def refused_library(library: bytes, target: str) -> str | None:
    """Why a kernel of a HIP library cannot be launched at all, by what its code object declares; or None."""
    try:
        for number, code in enumerate(codeobject.library_code(library, "library", target)):
            held = kernels.read(code, f"device code {number}")
            for symbol in held.undefined:
                return f"would not launch: its device code lacks the symbol {symbol!r}"
            for kernel in held.kernels.values():
                for what, wanted, most in (
                    ("bytes of LDS", kernel.lds_bytes, occupancy.LDS_BYTES_PER_GROUP),
                    ("VGPRs", kernel.vgprs, occupancy.MAX_VGPRS),
                ):
                    if wanted > most:
                        return f"{kernel.name}: would not launch: {wanted} {what}, over the limit of {most}"
    except InputError as error:
        return f"its device code cannot be read: {error}"
    return None
