"""Reads a release from the store into the :class:`Book` of its records: checked, joined, and nothing left over.

The release's sections say what there is; an object that fits nowhere, or a place without its object, refuses the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from solbench import canonical
from solbench.errors import IntegrityError
from solbench.memo import Memo, code_digest
from solbench.model.code import Code, Kernel
from solbench.model.configuration import Configuration
from solbench.model.definition import Definition
from solbench.model.readiness import Readiness
from solbench.model.release import Release, Section, TargetState
from solbench.model.score import Entry, Score
from solbench.model.solution import Solution
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.model.verdict import Verdict
from solbench.model.workload import Workload
from solbench.site.records import (
    Book,
    Bound,
    MeasurementSet,
    ProblemRecords,
    Record,
    TargetRecords,
    Unread,
    WorkloadRecords,
)
from solbench.store import Descriptor, Index, Store, decoded, index_bytes, without_kind

# What was canonical to other code need not be so to this.
_CODE: Final = code_digest([Path(canonical.__file__)], ())


def load(store: Store, memo: Memo | None = None) -> Book:
    """Read the release below ``store``; :class:`IntegrityError` names the first object that is missing or too many.

    ``memo``: where it is kept which objects were found canonical before, and plain (:func:`solbench.store.decoded`);
    their hashes are checked every time.
    """
    descriptor = store.index("release").get("release")
    if descriptor is None:
        raise IntegrityError(f"{store.root / 'release.json'}: has no entry 'release'")
    release = Record(
        "release", descriptor, Release.load(without_kind(store.load("release", descriptor)), descriptor.digest)
    )
    accepted = _accepted(memo, release.value.name)
    listed = sorted(release.value.sections.items())
    plain: set[str] = set()
    stages = {stage: _section(store, stage, reference, accepted, plain) for stage, reference in listed}
    reader = _Reader(store, stages, accepted, plain)
    reader.read_now |= {reference.digest for _, reference in listed}
    problems = _problems(reader)
    targets = _targets(reader, release.value.targets)
    traces = _traces(reader)
    kernels = _kernels(reader)
    sections = tuple(
        (stage, Descriptor(reference.kind, reference.digest, reference.size), len(stages[stage]))
        for stage, reference in sorted(release.value.sections.items())
    )
    stage_of = {entry.digest: stage for stage, index in stages.items() for entry in index.values()}
    stage_of |= {section.digest: "release" for _, section, _ in sections} | {descriptor.digest: "release"}
    book = Book(release, problems, targets, traces, kernels, sections, stage_of, frozenset(reader.read_now))
    _agree(book)
    reader.require_all_used()
    if memo is not None and not plain <= accepted:
        memo.put(_place(release.value.name), {"code": _CODE, "digests": sorted(plain)})
    return book


def _accepted(memo: Memo | None, release: str) -> frozenset[str]:
    kept = memo.get(_place(release)) if memo is not None else None
    return frozenset(kept["digests"]) if isinstance(kept, dict) and kept.get("code") == _CODE else frozenset()


def _place(release: str) -> str:
    return canonical.derived_key("site accepted", release)


class _Reader:
    """Hands out the entries of the sections and remembers which were never asked for."""

    def __init__(self, store: Store, stages: Mapping[str, Index], accepted: frozenset[str], plain: set[str]) -> None:
        self.store = store
        self.stages = stages
        self.used: set[tuple[str, str]] = set()
        self.accepted = accepted
        self.plain = plain
        self.read_now: set[str] = set()

    def names(self, stage: str, kind: str) -> list[str]:
        return sorted(name for name, entry in self.stages.get(stage, {}).items() if entry.kind == kind)

    def descriptor(self, stage: str, name: str) -> Descriptor | None:
        entry = self.stages.get(stage, {}).get(name)
        if entry is not None:
            self.used.add((stage, name))
        return entry

    def read(self, stage: str, name: str) -> Record[dict[str, Any]]:
        entry = self.descriptor(stage, name)
        if entry is None:
            raise IntegrityError(f"{stage}: no artifact {name!r}")
        value = _value(self.store.read(stage, entry), entry, self.accepted, self.plain)
        self.read_now.add(entry.digest)
        return Record(name, entry, without_kind(value))

    def require_all_used(self) -> None:
        for stage, index in self.stages.items():
            for name in sorted(index):
                if (stage, name) not in self.used:
                    raise IntegrityError(
                        f"{stage}: {name!r} ({index[name].kind}) has no place on the site; not rendered"
                    )


def _value(data: bytes, entry: Descriptor, accepted: frozenset[str], plain: set[str]) -> dict[str, Any]:
    """The artifact ``data``, whose hash was checked; where it need not be checked again next time, ``plain`` has it."""
    if entry.digest in accepted:
        plain.add(entry.digest)
        return dict(canonical.loads_plain(data))
    value, is_plain = decoded(data, entry)
    if is_plain:
        plain.add(entry.digest)
    return value


def _section(store: Store, stage: str, reference: Any, accepted: frozenset[str], plain: set[str]) -> Index:
    descriptor = Descriptor(reference.kind, reference.digest, reference.size)
    value = _value(store.read("release", descriptor), descriptor, accepted, plain)
    section = Section.load(without_kind(value), f"section {stage}")
    if section.stage != stage:
        raise IntegrityError(f"section {stage}: says it is of stage {section.stage!r}")
    index = {name: Descriptor(e.kind, e.digest, e.size) for name, e in section.entries.items()}
    path = store.root / f"{stage}.json"
    if path.is_file() and path.read_bytes() != index_bytes(index):
        raise IntegrityError(f"{store.root / stage}.json: differs from the release; run `solbench repro`")
    return index


def _problems(reader: _Reader) -> tuple[ProblemRecords, ...]:
    definitions: dict[str, Record[Definition]] = {}
    for key in reader.names("corpus", "definition"):
        record = reader.read("corpus", key)
        definitions[key] = Record(key, record.descriptor, Definition.load(record.value, key))
    solutions: dict[str, list[Record[Solution]]] = {key: [] for key in definitions}
    for name in reader.names("corpus", "solution"):
        key, separator, _ = name.rpartition("/solutions/")
        if not separator or key not in solutions:
            raise IntegrityError(f"corpus: solution {name!r} belongs to no problem")
        record = reader.read("corpus", name)
        solutions[key].append(Record(name, record.descriptor, Solution.load(record.value, name)))
    workloads: dict[str, list[WorkloadRecords]] = {key: [] for key in definitions}
    bounds = _bounds(reader)
    scores = _scores(reader)
    verdicts, code = _verdicts(reader), _code(reader)
    slots = _slots(reader)
    order = {name: position for position, name in enumerate(slots)}
    for name in sorted(reader.names("workloads", "workload"), key=lambda name: (order.get(name, -1), _natural(name))):
        key, uuid = name.rpartition("/")[::2]
        if key not in workloads:
            raise IntegrityError(f"workloads: {name!r} belongs to no problem")
        record = reader.read("workloads", name)
        workload = Workload.load(record.value.get("workload"), name)
        if workload.uuid != uuid or record.value.get("problem") != key:
            raise IntegrityError(f"workloads: {name!r} says that it is another workload")
        axes = workload.validate_against(definitions[key].value, name)
        if record.value.get("axes") != axes:
            raise IntegrityError(f"workloads: {name!r} states other axes than its definition gives")
        attestation = f"{name}/attestation"
        evidence = [
            (label, entry)
            for label, stage, entry_name in (
                ("operator graph", "graphs", name),
                ("einsum IR", "einsums", f"{name}/graph"),
                ("attestation", "einsums", attestation),
            )
            if (entry := reader.descriptor(stage, entry_name)) is not None
        ]
        workloads[key].append(
            WorkloadRecords(
                Record(name, record.descriptor, workload),
                axes,
                bounds.pop(name, {}),
                {target: tuple(found) for target, found in sorted(scores.pop(name, {}).items())},
                {target: tuple(found) for target, found in sorted(verdicts.pop(name, {}).items())},
                {target: tuple(found) for target, found in sorted(code.pop(name, {}).items())},
                reader.read("einsums", attestation) if attestation in reader.stages.get("einsums", {}) else None,
                tuple(evidence),
                slots.get(name, {}),
            )
        )
    for lost in (*bounds, *scores, *verdicts, *code):
        raise IntegrityError(f"bounds, scores, verdicts or code of {lost!r}, which is no workload of the release")
    return tuple(
        ProblemRecords(key, definition, tuple(solutions[key]), tuple(workloads[key]))
        for key, definition in definitions.items()
    )


def _code(reader: _Reader) -> dict[str, dict[str, list[Record[Code]]]]:
    """Records of candidates' code, by workload and target."""
    found: dict[str, dict[str, list[Record[Code]]]] = {}
    for name in reader.names("code", "code"):
        record = reader.read("code", name)
        code = Code.load(record.value, name)
        workload = f"{code.problem}/{code.workload}"
        if name != f"{workload}/{code.solution}@{code.target}":
            raise IntegrityError(f"code: {name!r} says that it is another record")
        found.setdefault(workload, {}).setdefault(code.target, []).append(Record(name, record.descriptor, code))
    return found


def _verdicts(reader: _Reader) -> dict[str, dict[str, list[Record[Verdict]]]]:
    """Verdicts from emulated cards, by workload and target."""
    found: dict[str, dict[str, list[Record[Verdict]]]] = {}
    for name in reader.names("verdicts", "verdict"):
        record = reader.read("verdicts", name)
        verdict = Verdict.load(record.value, name)
        workload = f"{verdict.problem}/{verdict.workload}"
        if name != f"{workload}/{verdict.solution}@{verdict.target}":
            raise IntegrityError(f"verdicts: {name!r} says that it is another verdict")
        found.setdefault(workload, {}).setdefault(verdict.target, []).append(Record(name, record.descriptor, verdict))
    return found


def _kernels(reader: _Reader) -> dict[str, Record[Kernel]]:
    """Kernels by digest; their code objects and assemblies are in the section, and no other."""
    found = {}
    for name in reader.names("code", "kernel"):
        record = reader.read("code", name)
        kernel = Kernel.load(record.value, name)
        for raw in (kernel.code_object, kernel.assembly):
            entry = f"{raw.kind}/{raw.digest.removeprefix('blake3:')}"
            if reader.descriptor("code", entry) is None:
                raise IntegrityError(f"code: {name!r} refers to {entry!r}, which is not there")
        found[record.descriptor.digest] = Record(name, record.descriptor, kernel)
    return found


def _configurations(reader: _Reader) -> list[Record[Configuration]]:
    found = []
    for name in reader.names("workloads", "configuration"):
        record = reader.read("workloads", name)
        value = Configuration.load(record.value, name)
        if name != value.name:
            raise IntegrityError(f"workloads: {name!r} says that it is another configuration")
        found.append(Record(name, record.descriptor, value))
    return found


def _slots(reader: _Reader) -> dict[str, dict[str, str]]:
    """Slot of every generated workload by target, in the order of the configurations."""
    slots: dict[str, dict[str, str]] = {}
    for record in _configurations(reader):
        for decision in record.value.decisions:
            for slot in decision.workloads:
                slots.setdefault(f"{decision.problem}/{slot.uuid}", {})[record.value.target] = slot.slot
    return slots


def _bounds(reader: _Reader) -> dict[str, dict[str, Record[Bound]]]:
    found: dict[str, dict[str, Record[Bound]]] = {}
    for name in reader.names("bounds", "bound"):
        record = reader.read("bounds", name)
        bound = Bound.load(record.value, name)
        if name != f"{bound.problem}/{bound.workload}@{bound.target}":
            raise IntegrityError(f"bounds: {name!r} says that it is another bound")
        if (bound.result is None) == (bound.reason is None):
            raise IntegrityError(f"bounds: {name!r} has neither a result nor a reason, or both")
        found.setdefault(f"{bound.problem}/{bound.workload}", {})[bound.target] = Record(name, record.descriptor, bound)
    return found


def _scores(reader: _Reader) -> dict[str, dict[str, list[Record[Score]]]]:
    found: dict[str, dict[str, list[Record[Score]]]] = {}
    for name in reader.names("scores", "score"):
        record = reader.read("scores", name)
        score = Score.load(record.value, name)
        suffix = f"/{score.workload}@{score.target}/{score.solution}"
        if not name.endswith(suffix):
            raise IntegrityError(f"scores: {name!r} says that it is another score")
        workload = f"{name.removesuffix(suffix)}/{score.workload}"
        found.setdefault(workload, {}).setdefault(score.target, []).append(Record(name, record.descriptor, score))
    return found


def _targets(reader: _Reader, states: Iterable[TargetState]) -> tuple[TargetRecords, ...]:
    entries: dict[str, list[Record[Entry]]] = {}
    for name in reader.names("scores", "entry"):
        record = reader.read("scores", name)
        entry = Entry.load(record.value, name)
        if name != f"{entry.target}/{entry.name}":
            raise IntegrityError(f"scores: {name!r} says that it is another entry")
        entries.setdefault(entry.target, []).append(Record(name, record.descriptor, entry))
    sets: dict[str, list[MeasurementSet]] = {}
    for name in reader.names("timings", "measurement-set"):
        record = reader.read("timings", name)
        header = SetHeader.load(record.value, name)
        prefix = name.removesuffix("header")
        counts = (sum(n.startswith(prefix) for n in reader.names("timings", kind)) for kind in ("trace", "omission"))
        found = MeasurementSet(Record(name, record.descriptor, header), *counts)
        sets.setdefault(header.target, []).append(found)
    readiness: dict[str, list[Record[Readiness]]] = {}
    for name in sorted(
        reader.names("readiness", "readiness"), key=lambda name: (name.rpartition("/")[2] != "static", name)
    ):
        record = reader.read("readiness", name)
        matrix = Readiness.load(record.value, name)
        if name != f"{matrix.target}/{matrix.level}":
            raise IntegrityError(f"readiness: {name!r} says that it is another matrix")
        readiness.setdefault(matrix.target, []).append(Record(name, record.descriptor, matrix))
    configurations: dict[str, list[Record[Configuration]]] = {}
    for configuration in _configurations(reader):
        configurations.setdefault(configuration.value.target, []).append(configuration)
    targets = []
    for state in states:
        name = f"hardware/{state.target}"
        hardware = reader.read("bounds", name) if name in reader.stages.get("bounds", {}) else None
        own_entries, own_sets = tuple(entries.pop(state.target, ())), tuple(sets.pop(state.target, ()))
        own_configurations = tuple(configurations.pop(state.target, ()))
        shown = tuple(readiness.pop(state.target, ()))
        targets.append(TargetRecords(state, hardware, own_configurations, own_entries, own_sets, shown))
    for lost in (*configurations, *entries, *sets, *readiness):
        raise IntegrityError(f"release: target {lost!r} has records and is not listed")
    return tuple(targets)


def _traces(reader: _Reader) -> dict[str, Unread[Trace | Omission]]:
    """Every trace and omission by the digest of its object."""
    found: dict[str, Unread[Trace | Omission]] = {}
    for kind in ("trace", "omission"):
        for name in reader.names("timings", kind):
            descriptor = reader.descriptor("timings", name)
            assert descriptor is not None
            found[descriptor.digest] = Unread(name, descriptor, partial(_trace, reader, name))
    return found


def _trace(reader: _Reader, name: str) -> Trace | Omission:
    record = reader.read("timings", name)
    if record.descriptor.kind == "trace":
        return Trace.load(record.value, name)
    return Omission.load({field: value for field, value in record.value.items() if field != "schema"}, name)


def _agree(book: Book) -> None:
    """The release object's own counts and targets are those of its artifacts."""
    release = book.release.value
    targets = [state.target for state in release.targets]
    if len(set(targets)) != len(targets):
        raise IntegrityError("release: a target is listed twice")
    pairs = list(book.workloads())
    counted = {"problems": len(book.problems), "workloads": len(pairs)}
    for name, count in counted.items():
        if getattr(release, name) != count:
            raise IntegrityError(f"release: says {getattr(release, name)} {name}, holds {count}")
    for _, workload in pairs:
        for target in (*workload.bounds, *workload.scores, *workload.verdicts):
            if target not in targets:
                raise IntegrityError(f"release: target {target!r} has records and is not listed")
    scored = [record.value for _, w in pairs for records in w.scores.values() for record in records]
    used = {score.trace.digest for score in scored if score.trace is not None}
    used |= {again.digest for score in scored for again in score.reproductions}
    for digest, trace in book.traces.items():
        if digest not in used:
            raise IntegrityError(f"timings: {trace.name!r} has no score")
    for state in release.targets:
        bounds = sum(
            state.target in workload.bounds and workload.bounds[state.target].value.result is not None
            for _, workload in pairs
        )
        if state.bounds != bounds:
            raise IntegrityError(f"release: says {state.bounds} bounds on {state.target}, holds {bounds}")


def _natural(name: str) -> list[Any]:
    """Sort key under which w2 comes before w10."""
    return [(0, int(part), "") if odd % 2 else (1, 0, part) for odd, part in enumerate(re.split(r"(\d+)", name))]
