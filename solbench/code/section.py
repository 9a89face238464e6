"""The ``code`` stage of a release: which candidates are compiled, and under which names what they become is kept.

``<problem>/<workload>/<solution>@<target>`` names a record; ``kernel/``, ``code-object/`` and ``assembly/`` with their
digest the objects that records refer to. Triton candidates are compiled; of HIP candidates only what a recorded set
holds is known, as it depends on the distribution's clang.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.code.targets import DEVICES
from solbench.errors import InputError
from solbench.model.configuration import load_selection
from solbench.store import Descriptor, Store, encode
from solbench.workspace import StageOutput

Job = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], str]


@dataclass(frozen=True)
class Candidate:
    """A solution that is written for a card, as artifacts: its definition, itself, its problem's workloads there."""

    problem: str
    definition: dict[str, Any]
    solution: dict[str, Any]
    descriptor: Descriptor
    instances: list[dict[str, Any]]
    target: str

    @property
    def languages(self) -> list[str]:
        return list(self.solution["spec"]["languages"])

    @property
    def job(self) -> Job:
        """Arguments of :func:`solbench.code.artifacts.compiled`."""
        return self.definition, self.solution, self.instances, self.target


def candidates(store: Store, targets: Sequence[str]) -> list[Candidate]:
    """Triton and HIP solutions of the corpus for each target that code is examined for, in name order."""
    corpus = store.index("corpus")
    selection = load_selection(store.index("workloads"), store.load)
    instances: dict[str, dict[str, dict[str, Any]]] = {}
    for name, _, instance in store.items("workloads", "workload"):
        instances.setdefault(instance["problem"], {})[name] = instance
    found = []
    for name, entry in sorted(corpus.items()):
        if entry.kind != "solution":
            continue
        problem = name.rpartition("/solutions/")[0]
        solution = store.load("corpus", entry)
        for target in targets:
            wanted = target in DEVICES and target in solution["spec"]["target_hardware"]
            if not wanted or not {"triton", "hip_cpp"} & set(solution["spec"]["languages"]):
                continue
            here = instances.get(problem, {}).items()
            chosen = [instance for key, instance in here if selection.includes(key, target)]
            if chosen:
                definition = store.load("corpus", corpus[problem])
                found.append(Candidate(problem, definition, solution, entry, chosen, target))
    return found


def recorded(found: Sequence[Candidate], folder: Path) -> Iterator[dict[str, Any]]:
    """What the HIP candidates among ``found`` are, by the sets below ``folder``, each as ``compiled`` returns it; one
    that is in no set is UNSUPPORTED. :class:`InputError` for a set that holds another version of a candidate.
    """
    from solbench.code import recorded as sets
    from solbench.code.artifacts import artifacts
    from solbench.code.compiling import Recorded
    from solbench.code.solutions import launches_of
    from solbench.model.solution import Solution

    known = {}
    for path in sorted(folder.glob("*")):
        read = sets.load(path)
        for one in read.solutions:
            if (one.key, read.arch) in known:
                raise InputError(str(path), f"{one.problem}/{one.name} is in another set for {read.arch} as well")
            known[one.key, read.arch] = (path, one)
    for candidate in found:
        if "hip_cpp" not in candidate.languages:
            continue
        body = {name: value for name, value in candidate.solution.items() if name != "kind"}
        solution = Solution.load(body, candidate.problem)
        uuids = [instance["workload"]["uuid"] for instance in candidate.instances]
        held = known.get(((candidate.problem, solution.name), candidate.target))
        if held is None:
            reason = "language: no recorded set of HIP code holds it (`solbench code record`)"
            told = [Recorded(uuid, "UNSUPPORTED", reason=reason) for uuid in uuids]
            yield artifacts(solution, candidate.instances, candidate.target, told, {}, {"compiler": "none"})
            continue
        path, one = held
        if one.solution != candidate.descriptor.digest:
            text = f"{one.problem}: solution {one.name} has changed since; record it anew (`solbench code record`)"
            raise InputError(str(path), text)
        launches, files = launches_of(one.code)
        told = [Recorded(uuid, "COMPILED", launches) for uuid in uuids]
        yield artifacts(solution, candidate.instances, candidate.target, told, files, one.code.compiler)


def put(output: StageOutput, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Store what :func:`solbench.code.artifacts.compiled` returned; the records."""
    for name, kind, value in names_of(result):
        if kind == "code":
            output.put(name, kind, value)
        elif name not in output.index:  # two candidates may hold the same kernel
            data = value if isinstance(value, bytes) else encode(kind, value)
            output.put_bytes(name, kind, data)
    return list(result["code"])


def names_of(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(name in the section, kind, artifact or bytes) of all that ``compiled`` returned."""
    for code in result["code"]:
        yield f"{code['problem']}/{code['workload']}/{code['solution']}@{code['target']}", "code", code
    for digest, kernel in result["kernels"].items():
        for kind, field in (("code-object", "code_object"), ("assembly", "assembly")):
            raw = kernel[field]["digest"].removeprefix("blake3:")
            yield f"{kind}/{raw}", kind, base64.b64decode(result["files"][raw])
        yield f"kernel/{digest.removeprefix('blake3:')}", "kernel", kernel
