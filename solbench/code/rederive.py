"""Whether what a checkout holds of candidates' code is what the compilers here make of them."""

from __future__ import annotations

from collections.abc import Iterator

from solbench.code import recorded
from solbench.code.artifacts import compiled
from solbench.code.compiling import Limits, toolchain
from solbench.code.recorded import Rederived
from solbench.code.section import Candidate, candidates, names_of
from solbench.errors import UnsupportedError
from solbench.model.solution import Solution
from solbench.store import Descriptor, Store, encode
from solbench.workspace import Workspace


def rederived(workspace: Workspace, timeout_s: float) -> Iterator[Rederived]:
    """One a Triton candidate of the stage ``code``, then one a HIP candidate of each recorded set.

    ``timeout_s``: seconds a workload, or a HIP solution. Nothing comes from the memo.
    """
    found = candidates(workspace.store, workspace.parameters().targets)
    for candidate in found:
        if "triton" in candidate.languages:
            yield _triton(workspace.store, candidate, Limits(timeout_s=timeout_s))
    solutions = {}
    for candidate in found:
        body = {name: value for name, value in candidate.solution.items() if name != "kind"}
        solutions[candidate.problem, str(candidate.solution["name"])] = Solution.load(body, candidate.problem)
    for path in sorted((workspace.checkout / "measurements" / "code").glob("*")):
        yield from recorded.rederive(recorded.load(path), solutions, timeout_s)


def _triton(store: Store, candidate: Candidate, limits: Limits) -> Rederived:
    name = f"{candidate.solution['name']}@{candidate.target}"
    index = store.index("code")
    uuids = [instance["workload"]["uuid"] for instance in candidate.instances]
    entries = [index.get(f"{candidate.problem}/{uuid}/{name}") for uuid in uuids]
    stored = [store.load("code", entry) for entry in entries if entry is not None]
    if len(stored) < len(entries) or any(one["candidate"] != candidate.descriptor.as_dict() for one in stored):
        return Rederived(candidate.problem, name, "stale", "the release holds no code of it as it is now")
    try:
        here = toolchain()
    except UnsupportedError as error:
        return Rederived(candidate.problem, name, "no compiler", str(error))
    for one in stored:
        if one["toolchain"] != here:
            was = f"{one['toolchain'].get('compiler')} {one['toolchain'].get('version')}"
            reason = f"recorded with {was}; here is {here['compiler']} {here['version']}"
            return Rederived(candidate.problem, name, "other compiler", reason)
    made = compiled(*candidate.job, limits=limits)
    for what, kind, value in names_of(made):
        if isinstance(value, bytes):
            descriptor = Descriptor.of(kind, value)
        else:
            descriptor = Descriptor.of(kind, encode(kind, value))
        if index.get(what) != descriptor:
            return Rederived(candidate.problem, name, "differs", f"{what} is another object, or none")
    return Rederived(candidate.problem, name, "same")
