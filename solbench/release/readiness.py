"""Which workloads and solutions a target has to show before its results are published, and what it shows.

From the sections of a release alone: no PyTorch, no device. :mod:`solbench.cli.qualify` runs what has to be run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from solbench import canonical
from solbench.code.targets import DEVICES
from solbench.corpus.reduce import elements
from solbench.errors import InputError
from solbench.model.configuration import load_selection
from solbench.model.definition import Definition
from solbench.model.readiness import SCHEMA, Item, Level, Place, Readiness
from solbench.model.record import Descriptor as Reference
from solbench.model.solution import BASELINE
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.release.findings import Findings
from solbench.release.schemas import same
from solbench.store import Descriptor, encode, without_kind

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]
Key = tuple[str, str, str]

STAGE: Final = "readiness"
LEVELS: Final = get_args(Level)
# Languages of kernels for a card; code that they become is examined for the targets of ``solbench.code``.
COMPILED_LANGUAGES: Final = frozenset({"triton", "hip_cpp"})


@dataclass(frozen=True)
class Case:
    """One (problem, workload, solution), with the digests of the last two; no solution: the workload's analysis."""

    problem: str
    workload: str
    instance: str
    solution: str | None
    candidate: str | None

    @property
    def key(self) -> Key:
        return self.problem, self.workload, self.solution or ""


def targets_of(sections: Sections) -> list[str]:
    """Targets of a release: those that it has a machine model of."""
    names = (name for name, entry in sections["bounds"].items() if entry.kind == "hardware")
    return sorted(name.removeprefix("hardware/") for name in names)


def cases(sections: Sections, load: Load, target: str, level: Level) -> list[Case]:
    """All that a matrix of ``target`` and ``level`` has to hold, in its order.

    Static: the analysis of every workload, and of every candidate whose code is examined for the target its code on
    each. Canary: the baseline and every solution for the target, on the workloads of each problem with the fewest and
    the most elements in inputs and outputs. Full: on all of them.
    """
    corpus = sections["corpus"]
    selection = load_selection(sections["workloads"], load)
    workloads: dict[str, list[tuple[str, Descriptor]]] = {}
    for name, entry in sorted(sections["workloads"].items()):
        if entry.kind == "workload" and selection.includes(name, target):
            key, _, uuid = name.rpartition("/")
            workloads.setdefault(key, []).append((uuid, entry))
    found: list[Case] = []
    candidates = _solutions(corpus, load, target, level)
    for key, instances in workloads.items():
        solutions = candidates.get(key, ())
        chosen = _extremes(key, instances, corpus, load) if level == "canary" else instances
        for uuid, instance in chosen:
            if level == "static":
                found.append(Case(key, uuid, instance.digest, None, None))
            found += [Case(key, uuid, instance.digest, name, entry.digest) for name, entry in solutions]
    return sorted(found, key=lambda case: case.key)


def static(sections: Sections, load: Load, target: str) -> Readiness | None:
    """The static matrix of a target, derived from the release; None where it has no workload for it."""
    items = []
    for case in cases(sections, load, target, "static"):
        if case.solution is None:
            entry = sections["bounds"].get(f"{case.problem}/{case.workload}@{target}")
            reason = "no bound was derived" if entry is None else _why_not_analysed(load("bounds", entry))
        else:
            entry = sections["code"].get(f"{case.problem}/{case.workload}/{case.solution}@{target}")
            reason = "its code was not examined" if entry is None else _why_not_compiled(load("code", entry))
        items.append(_item(case, reason, entry))
    return _matrix(target, "static", items, None) if items else None


def of_records(
    sections: Sections, load: Load, target: str, level: Level, header: SetHeader,
    records: Iterable[tuple[str, Trace | Omission]],
) -> Readiness:  # fmt: skip
    """The canary or full matrix from what was run: a case without a record of this release's digests is not ready."""
    found = {(problem, record.workload, record.solution): record for problem, record in records}
    items = []
    for case in cases(sections, load, target, level):
        record = found.get(case.key)
        if record is None or record.workload_digest != case.instance:
            reason: str | None = "not run"
        elif isinstance(record, Omission):
            reason = f"not run: {record.reason}"
        elif record.solution_digest != case.candidate:
            reason = "not run"
        else:
            reason = None if record.status == "PASSED" else f"{record.status}: {record.reason}"
        items.append(_item(case, reason, None))
    place = Place(
        harness=header.harness, environment=header.environment, device=header.device, cards=header.cards,
        isolation=header.protocol.isolation,
    )  # fmt: skip
    return _matrix(target, level, items, place)


def read(path: Path) -> Readiness:
    """A recorded matrix: canonical JSON, under ``<target>/<level>.json``. :class:`InputError` where it is not that."""
    value = canonical.loads(path.read_bytes(), str(path))
    if not isinstance(value, dict) or value.get("kind") != "readiness":
        raise InputError(str(path), "must be a readiness matrix, as `solbench qualify` writes it")
    matrix = Readiness.load(without_kind(value), str(path))
    if matrix.level == "static" or path.parts[-2:] != (matrix.target, f"{matrix.level}.json"):
        raise InputError(str(path), f"holds the {matrix.level} matrix of {matrix.target}; static ones are derived")
    return matrix


def write(matrix: Readiness, folder: Path) -> Path:
    """Write a matrix of what was run to ``<target>/<level>.json`` below ``folder``, whole or not at all; the path."""
    from solbench.workspace import write_file, writing

    path = folder / matrix.target / f"{matrix.level}.json"
    with writing(str(path)):
        write_file(path, encode("readiness", matrix.as_dict()))
    return path


def problems(matrix: Readiness, sections: Sections, load: Load) -> Iterator[tuple[str, object, object]]:
    """(where, expected, found) for what a matrix does not say of this release, or says of another one."""
    stated = {item.key: (item.instance, item.candidate) for item in matrix.items}
    wanted = {case.key: (case.instance, case.candidate) for case in cases(sections, load, matrix.target, matrix.level)}
    for key in sorted(wanted.keys() | stated.keys()):
        if stated.get(key) != wanted.get(key):
            yield "/".join(part for part in key if part), wanted.get(key, "nothing"), stated.get(key, "nothing")


def derive_again(sections: Sections, load: Load, findings: Findings) -> int:
    """Whether the matrices of a release are of its workloads and solutions, and the static ones derived; how many.

    Equality of the static ones is to the byte. That something ran is the word of who ran it.
    """
    stated = sections[STAGE]
    targets = targets_of(sections)
    for name, entry in stated.items():
        where = f"{STAGE}: {name}"
        target, _, level = name.rpartition("/")
        if entry.kind != "readiness" or target not in targets or level not in LEVELS:
            findings.add(STAGE, "cross-ref", where, "the readiness of a target of the release", entry.kind)
            continue
        matrix = Readiness.load(without_kind(load(STAGE, entry)), where)
        if (matrix.target, matrix.level) != (target, level):
            findings.add(STAGE, "cross-ref", where, (target, level), (matrix.target, matrix.level))
            continue
        for case, expected, found in problems(matrix, sections, load):
            findings.add(STAGE, "cross-ref", f"{where}: {case}", expected, found)
    for target in targets:
        derived = static(sections, load, target)
        held = stated.get(f"{target}/static")
        where = f"{STAGE}: {target}/static"
        if (held is None) != (derived is None):
            findings.add(STAGE, "readiness-mismatch", where, derived and "a matrix", held and held.digest)
        elif held is not None and derived is not None and not same(derived.as_dict(), without_kind(load(STAGE, held))):
            expected = Descriptor.of("readiness", encode("readiness", derived.as_dict()))
            findings.add(STAGE, "readiness-mismatch", where, expected.digest, held.digest)
    return len(stated)


def unready(matrix: Readiness) -> list[Item]:
    """What keeps results of the target from being published: where it is not ready and no candidate's own failure.

    A candidate that fails its check has failed, which is a result; the baseline must run everywhere, and what was not
    run is no result.
    """
    return [
        item
        for item in matrix.items
        if not item.ready and (item.solution in (None, BASELINE) or str(item.reason).startswith("not run"))
    ]


def _solutions(
    corpus: Mapping[str, Descriptor], load: Load, target: str, level: Level
) -> dict[str, list[tuple[str, Descriptor]]]:
    """By problem: (name, its object) of every solution that a matrix of the level holds."""
    found: dict[str, list[tuple[str, Descriptor]]] = {}
    for name, entry in corpus.items():
        problem, separator, solution = name.rpartition("/solutions/")
        if not separator:
            continue
        spec = load("corpus", entry)["spec"]
        compiled = bool(COMPILED_LANGUAGES & set(spec["languages"]))
        # On a cpu such a candidate is interpreted: a verdict, but no result of that target.
        runs = solution == BASELINE or (target in spec["target_hardware"] and not (compiled and target == "cpu"))
        if runs and (level != "static" or (compiled and target in DEVICES)):
            found.setdefault(problem, []).append((solution, entry))
    return found


def _extremes(
    problem: str, instances: list[tuple[str, Descriptor]], corpus: Mapping[str, Descriptor], load: Load
) -> list[tuple[str, Descriptor]]:
    """The workload with the fewest elements and the one with the most; of equals the first by name."""
    definition = Definition.load(without_kind(load("corpus", corpus[problem])), problem)
    sizes = {uuid: elements(definition, load("workloads", entry)["axes"]) for uuid, entry in instances}
    ends = {min(sizes, key=lambda uuid: sizes[uuid]), max(sizes, key=lambda uuid: sizes[uuid])}
    return [(uuid, entry) for uuid, entry in instances if uuid in ends]


def _why_not_analysed(bound: Mapping[str, Any]) -> str | None:
    if bound["result"] is None:
        return str(bound["reason"])
    return None if bound["attestation"] is not None else "its IR is not attested"


def _why_not_compiled(code: Mapping[str, Any]) -> str | None:
    return None if code["status"] == "COMPILED" else f"{code['status']}: {code['reason']}"


def _item(case: Case, reason: str | None, evidence: Descriptor | None) -> Item:
    reference = None if evidence is None else Reference(kind=evidence.kind, digest=evidence.digest, size=evidence.size)
    return Item(
        problem=case.problem, workload=case.workload, instance=case.instance, solution=case.solution,
        candidate=case.candidate, ready=reason is None, reason=reason, evidence=reference,
    )  # fmt: skip


def _matrix(target: str, level: Level, items: Iterable[Item], place: Place | None) -> Readiness:
    rows = tuple(items)
    return Readiness(
        schema=SCHEMA, target=target, level=level, items=rows, ready=sum(item.ready for item in rows),
        total=len(rows), place=place,
    )  # fmt: skip
