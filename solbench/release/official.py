"""Whether an entry of a release has an official score: every condition that holds, and every one that does not.

Nothing that a caller says is an input beside which entry is asked about: all comes from the sections of a release whose
bundle was verified first. A condition that cannot be judged does not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from solbench.corpus.load import eager_solution
from solbench.model.configuration import load_selection
from solbench.model.definition import Definition
from solbench.model.readiness import Readiness
from solbench.model.score import Entry
from solbench.model.solution import BASELINE
from solbench.model.trace import Observation, SetHeader, Trace
from solbench.release import pins, readiness
from solbench.score.records import Measured, Record, incomparable, measured, stale
from solbench.store import Descriptor, encode, without_kind

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]

# Observed clocks of baseline and candidate in one process may differ by this share.
CLOCKS_WITHIN: Final = 0.03
# Workloads whose headroom is too narrow to score have no S; an official mean may leave out this share of them.
TOO_NARROW_SHARE: Final = 0.1
PROTOCOL: Final = "full"
# States of a score that are no result.
_NO_RESULT: Final = ("audit", "not_timed", "no_bound", "not_attempted")


@dataclass(frozen=True)
class Condition:
    """One thing that an official score needs: whether it holds, and what was found."""

    name: str
    holds: bool
    found: str

    def as_dict(self) -> dict[str, Any]:
        return {"condition": self.name, "holds": self.holds, "found": self.found}


@dataclass(frozen=True)
class Official:
    """What is known of one entry. ``official`` when every condition holds; the numbers stand in ``entry``."""

    entry: Entry
    conditions: tuple[Condition, ...]
    devices: tuple[str, ...]
    clocks: str

    @property
    def official(self) -> bool:
        return all(condition.holds for condition in self.conditions)

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.entry.target,
            "name": self.entry.name,
            "official": self.official,
            "entry": self.entry.as_dict(),
            "devices": list(self.devices),
            "clocks": self.clocks,
            "conditions": [condition.as_dict() for condition in self.conditions],
        }


def entries(sections: Sections, load: Load, target: str | None = None, name: str | None = None) -> list[Official]:
    """Every entry of a release, or those of ``target`` and ``name``, by name."""
    found = measured(sections, load)
    chosen = []
    for logical, reference in sorted(sections["scores"].items()):
        if reference.kind == "entry":
            entry = Entry.load(without_kind(load("scores", reference)), f"scores: {logical}")
            if target in (None, entry.target) and name in (None, entry.name):
                chosen.append(_judged(entry, found, sections, load))
    return chosen


def _judged(entry: Entry, found: Measured, sections: Sections, load: Load) -> Official:
    records = [*found.records.get((entry.target, entry.name), {}).values()]
    headers = _headers(records)
    baseline = _headers([*found.records.get((entry.target, BASELINE), {}).values()])
    conditions = (
        _corpus(entry, sections, load),
        _baseline(entry, sections, load),
        _denominators(entry, sections, load),
        *_readiness(entry.target, sections, load),
        _environment(entry, headers, baseline),
        _protocol(headers),
        _isolation(headers),
        _harness(headers),
        _clock_policy(headers),
        _observed(entry.target, found.records.get((entry.target, entry.name), {}), sections),
    )
    devices = tuple(sorted({_device(header) for header in headers}))
    return Official(entry, conditions, devices, "+".join(sorted({header.clocks for header in headers})) or "unknown")


def _corpus(entry: Entry, sections: Sections, load: Load) -> Condition:
    found = pins.pinned(sections, load, entry.target)
    other = [name for name, holds in found.items() if not holds]
    if other:
        return Condition("pinned corpus", False, f"{', '.join(other)}: not the pinned one for {entry.target}")
    return Condition("pinned corpus", bool(found), ", ".join(found) or "no workload for it")


def _baseline(entry: Entry, sections: Sections, load: Load) -> Condition:
    """The baseline of each problem is its own reference, run eagerly, and nothing else."""
    wrong = []
    corpus = sections["corpus"]
    problems = [name for name, one in corpus.items() if one.kind == "definition"]
    for name in problems:
        definition = Definition.load(without_kind(load("corpus", corpus[name])), name)
        expected = Descriptor.of("solution", encode("solution", eager_solution(definition).as_dict()))
        if corpus.get(f"{name}/solutions/{BASELINE}") != expected:
            wrong.append(name)
    if wrong:
        return Condition("baseline", False, f"{len(wrong)} of {len(problems)} problems have another, as {wrong[0]}")
    return Condition("baseline", True, f"{BASELINE}: the reference of each of {len(problems)} problems")


def _denominators(entry: Entry, sections: Sections, load: Load) -> Condition:
    """Every workload that counts on the target has a result; few are too narrow to score.

    A problem that the entry has no solution for counts 0, and so has one.
    """
    selection = load_selection(sections["workloads"], load)
    roles = {name: load("corpus", one)["role"] for name, one in sections["corpus"].items() if one.kind == "definition"}
    counted = {
        name
        for name, one in sections["workloads"].items()
        if one.kind == "workload"
        and selection.counts(name, entry.target)
        and roles[name.rpartition("/")[0]] == "scored"
    }
    missing: Counter[str] = Counter()
    suffix = f"@{entry.target}/{entry.name}"
    for name, one in sections["scores"].items():
        if one.kind == "score" and name.endswith(suffix) and name.removesuffix(suffix) in counted:
            missing[load("scores", one)["state"]] += 1
    parts = [f"{missing[state]} {state.replace('_', ' ')}" for state in _NO_RESULT if missing[state]]
    total = len(counted)
    without = sum(
        problem.total for problem in entry.problems
        if f"{problem.definition}/solutions/{entry.name}" not in sections["corpus"]
    )  # fmt: skip
    words = f"{entry.scored + entry.failed} of {total} workloads count, {entry.too_narrow} too narrow to score"
    if without:
        words += f", {without} of problems without a solution, which count 0"
    if entry.workloads != total or missing.total() + without != total:
        parts.append(
            f"the entry is over {entry.workloads} workloads, {missing.total() + without} of them accounted for"
        )
    if entry.too_narrow > TOO_NARROW_SHARE * total:
        parts.append(f"more than {TOO_NARROW_SHARE:.0%} too narrow to score")
    if entry.s is None:
        parts.append(entry.withheld or "no S")
    return Condition("full denominators", total > 0 and not parts, "; ".join([words, *parts]))


def _readiness(target: str, sections: Sections, load: Load) -> Iterator[Condition]:
    for level in ("static", "full"):
        reference = sections[readiness.STAGE].get(f"{target}/{level}")
        if reference is None:
            yield Condition(f"{level} readiness", False, f"none; `solbench qualify {level} --target {target}`")
            continue
        matrix = Readiness.load(without_kind(load(readiness.STAGE, reference)), f"readiness: {target}/{level}")
        lacking = readiness.unready(matrix)
        words = f"{matrix.ready} of {matrix.total} ready"
        if lacking:
            words += (
                f"; {len(lacking)} hold it back, as {'/'.join(p for p in lacking[0].key if p)}: {lacking[0].reason}"
            )
        yield Condition(f"{level} readiness", not lacking, words)


def _environment(entry: Entry, headers: Sequence[SetHeader], baseline: Sequence[SetHeader]) -> Condition:
    apart = incomparable(headers, baseline) if headers else "no measurement set"
    if not baseline:
        apart = f"no {BASELINE} entry was measured on {entry.target}"
    return Condition("one environment", apart is None, apart or "device, environment, harness and protocol are shared")


def _protocol(headers: Sequence[SetHeader]) -> Condition:
    names = sorted({header.protocol.name for header in headers})
    return Condition("protocol", names == [PROTOCOL], f"{'+'.join(names) or 'none'}; official is {PROTOCOL}")


def _isolation(headers: Sequence[SetHeader]) -> Condition:
    """Candidates ran in namespaces and behind Landlock, as the traces' header says."""
    for header in headers:
        names = header.protocol.isolation
        kinds = [any(word in name for name in names) for word in ("namespace", "landlock")]
        if not all(kinds):
            return Condition("full sandbox", False, f"ran with {', '.join(names) or 'nothing'}")
    return Condition("full sandbox", bool(headers), "namespaces and Landlock" if headers else "no measurement set")


def _harness(headers: Sequence[SetHeader]) -> Condition:
    found = sorted({header.harness for header in headers})
    return Condition("one harness", len(found) == 1, ", ".join(found) or "no measurement set")


def _clock_policy(headers: Sequence[SetHeader]) -> Condition:
    found = sorted({header.clocks for header in headers})
    return Condition("clock policy declared", len(found) == 1, ", ".join(found) or "none")


def _observed(target: str, records: Mapping[tuple[str, str], Record], sections: Sections) -> Condition:
    """In every process of every timed trace both sides' clocks were read, and agree within 3 %."""
    traces = [
        (f"{problem}/{uuid}", record.value)
        for (problem, uuid), record in sorted(records.items())
        if isinstance(record.value, Trace) and record.value.timing is not None
        and f"{problem}/{uuid}" in sections["workloads"]
        and stale(record.value, f"{problem}/{uuid}", sections) is None
    ]  # fmt: skip
    unread = [name for name, trace in traces if _spread(trace, target) is None]
    spreads = [(spread, name) for name, trace in traces if (spread := _spread(trace, target)) is not None]
    if unread or not traces:
        words = f"not read in {len(unread)} of {len(traces)} timed traces" + (f", as {unread[0]}" if unread else "")
        return Condition("observed clocks", False, words)
    worst, where = max(spreads)
    words = f"baseline and candidate within {worst:.1%} in {len(traces)} of {len(traces)} timed traces"
    if worst > CLOCKS_WITHIN:
        apart = sum(spread > CLOCKS_WITHIN for spread, _ in spreads)
        words = f"{apart} of {len(traces)} timed traces differ by more than {CLOCKS_WITHIN:.0%}, {where} by {worst:.1%}"
    return Condition("observed clocks", worst <= CLOCKS_WITHIN, words)


def _spread(trace: Trace, target: str) -> float | None:
    """Largest relative difference of both sides' mean clock over the processes of a trace; None where one is unread."""
    assert trace.timing is not None
    found = []
    for candidate, baseline in zip(trace.timing.candidate, trace.timing.baseline, strict=True):
        clocks = [_clock(side.observed, target) for side in (candidate, baseline)]
        if clocks[0] is None or clocks[1] is None:
            return None
        found.append(abs(clocks[0] - clocks[1]) / clocks[1])
    return max(found, default=None)


def _clock(observed: Any, target: str) -> float | None:
    """Mean of the clock (Hz) before and after the samples of one side."""
    if observed is None:
        return None
    values = [_hz(look, target) for look in (observed.before, observed.after)]
    if values[0] is None or values[1] is None or min(values[0], values[1]) <= 0:
        return None
    return (values[0] + values[1]) / 2


def _hz(look: Observation, target: str) -> float | None:
    return look.cpu_hz if target == "cpu" else look.graphics_hz


def _headers(records: Sequence[Record]) -> list[SetHeader]:
    return [header for _, header in sorted({record.set_name: record.header for record in records}.items())]


def _device(header: SetHeader) -> str:
    named = (header.device.get(field) for field in ("name", "model"))
    return next((value for value in named if isinstance(value, str) and value), "unnamed")
