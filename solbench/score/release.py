"""Every score and entry of a release, from its sections."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solbench.errors import InputError
from solbench.model.configuration import load_selection
from solbench.model.record import Descriptor as Reference
from solbench.model.score import Score
from solbench.model.solution import BASELINE
from solbench.model.trace import SetHeader, Trace
from solbench.score.entry import aggregate
from solbench.score.records import Load, Record, Sections, incomparable, measured, stale
from solbench.score.trust import trust
from solbench.score.workload import References, changed, score_workload, unscored
from solbench.store import Descriptor, Store

Artifact = tuple[str, str, dict[str, Any]]


def score_release(store: Store) -> list[Artifact]:
    """Every score and entry of a store that has the stages corpus, workloads, bounds and timings.

    (logical name, kind, artifact) in name order: ``<target>/<entry>`` and ``<problem>/<uuid>@<target>/<solution>``.
    """
    stages = ("corpus", "workloads", "bounds", "timings")
    return score_sections({stage: store.index(stage) for stage in stages}, store.load)


def score_sections(sections: Sections, load: Load) -> list[Artifact]:
    """As :func:`score_release`, from the indexes of the stages and a function that loads an artifact of one.

    Baseline and candidates of one target share card, environment and protocol, or the candidates' totals are withheld.
    A target gets scores when the release holds a measurement set of it, and an entry for every solution name in those
    sets that the corpus knows. A record of another version of its workload or solution is stale and counts as not
    attempted.
    :class:`InputError` where records contradict their names, or one workload of a solution is measured twice.
    """
    problems = _problems(sections, load)
    selection = load_selection(sections["workloads"], load)
    found = measured(sections, load)
    bounds = {
        name: (entry, load("bounds", entry)) for name, entry in sections["bounds"].items() if entry.kind == "bound"
    }
    artifacts: list[Artifact] = []
    for (target, solution), records in sorted(found.records.items()):
        if not any(f"{problem.key}/solutions/{solution}" in sections["corpus"] for problem in problems):
            continue
        rows: dict[str, list[Score]] = {}
        headers = _headers(records)
        for problem in problems:
            has_solution = f"{problem.key}/solutions/{solution}" in sections["corpus"]
            counted = []
            for uuid in problem.workloads:
                name = f"{problem.key}/{uuid}"
                if not selection.includes(name, target):
                    continue
                case = _Case(problem, uuid, solution, target, bounds.get(f"{name}@{target}"))
                again = found.reproductions.get((target, solution, problem.key, uuid), ())
                score = _score_case(case, records.get((problem.key, uuid)), headers[0].floor_s, sections, again)
                if has_solution:
                    artifacts.append((f"{name}@{target}/{solution}", "score", score.as_dict()))
                if selection.counts(name, target):
                    counted.append(score)
            if problem.role == "scored" and counted:
                rows[problem.key] = counted
        missing = {key for key in rows if f"{key}/solutions/{solution}" not in sections["corpus"]}
        protocol = "+".join(sorted({header.protocol.name for header in headers}))
        apart = incomparable(headers, _headers(found.records.get((target, BASELINE), {})))
        entry = aggregate(solution, target, protocol, rows, missing, apart)
        artifacts.append((f"{target}/{solution}", "entry", entry.as_dict()))
    return sorted(artifacts, key=lambda artifact: artifact[0])


@dataclass(frozen=True)
class _Problem:
    key: str
    definition: str
    role: str
    workloads: tuple[str, ...]


@dataclass(frozen=True)
class _Case:
    problem: _Problem
    uuid: str
    solution: str
    target: str
    bound: tuple[Descriptor, dict[str, Any]] | None

    @property
    def result(self) -> dict[str, Any] | None:
        """Result of the bound, or None."""
        return self.bound[1]["result"] if self.bound else None

    @property
    def references(self) -> References:
        return References(bound=_reference(self.bound[0]) if self.bound else None)


def _problems(sections: Sections, load: Load) -> list[_Problem]:
    workloads: dict[str, list[str]] = {}
    for name, entry in sorted(sections["workloads"].items()):
        if entry.kind != "workload":
            continue
        key, _, uuid = name.rpartition("/")
        workloads.setdefault(key, []).append(uuid)
    problems = []
    for key, entry in sorted(sections["corpus"].items()):
        if entry.kind == "definition":
            definition = load("corpus", entry)
            uuids = tuple(workloads.pop(key, ()))
            problems.append(_Problem(key, definition["name"], definition["role"], uuids))
    for key in workloads:
        raise InputError(f"workloads: {key}", "belongs to no definition of the corpus")
    return problems


def _headers(records: Mapping[tuple[str, str], Record]) -> list[SetHeader]:
    """Headers of the sets of one entry, by name."""
    return [header for _, header in sorted({record.set_name: record.header for record in records.values()}.items())]


def _score_case(
    case: _Case, record: Record | None, floor_s: float, sections: Sections, reproductions: Sequence[Record] = ()
) -> Score:
    """Score of one workload of an entry, with or without a record of it."""
    changes: dict[str, Any] = {}
    again: list[tuple[Record, Score]] = []
    if reproductions:
        where = f"{case.problem.key}/{case.uuid}"
        current = [other for other in reproductions if not stale(other.value, where, sections)]
        again = [(other, _scored(case, other, sections)) for other in current]
        changes["reproductions"] = tuple(_reference(other.reference) for other in reproductions)
    if record is not None:
        score = _scored(case, record, sections)
        return changed(score, trust=trust(record, score, again), **changes)
    reason = "no record of it in the measurement sets"
    if f"{case.problem.key}/solutions/{case.solution}" not in sections["corpus"]:
        reason = f"{case.solution} has no solution for this problem"
    base = unscored(
        case.problem.definition, case.uuid, case.solution, case.target, case.result, floor_s, case.references
    )
    return changed(base, reason=reason, **changes)


def _scored(case: _Case, record: Record, sections: Sections) -> Score:
    """Score that one record gives."""
    name = f"{case.problem.key}/{case.uuid}"
    if record.value.definition != case.problem.definition:
        raise InputError(f"timings: {name}", f"says that it is of definition {record.value.definition!r}")
    references = replace(
        case.references, trace=_reference(record.reference), measurement_set=_reference(record.header_reference)
    )
    floor_s = record.header.floor_s
    old = stale(record.value, name, sections)
    if old is None and isinstance(record.value, Trace):
        no_bound = (case.bound[1]["reason"] if case.bound else None) or "no bound"
        return score_workload(record.value, case.result, floor_s, references, no_bound=no_bound)
    reason = old or getattr(record.value, "reason", None) or "not attempted"
    base = unscored(case.problem.definition, case.uuid, case.solution, case.target, case.result, floor_s, references)
    return changed(base, reason=reason)


@functools.lru_cache(maxsize=1024)
def _reference(descriptor: Descriptor) -> Reference:
    return Reference(kind=descriptor.kind, digest=descriptor.digest, size=descriptor.size)
