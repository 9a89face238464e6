"""Our traces in the family's form: medians in milliseconds, the worst error over all outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from solbench.corpus.document import read_json_lines
from solbench.corpus.exchange.notes import Notes
from solbench.corpus.load import Problem
from solbench.errors import InputError
from solbench.model.trace import SET_SCHEMA, Correctness, Omission, SetHeader, Status, Timing, Trace
from solbench.score.statistics import estimate

# Their verdicts; ours has one more, and FlashInfer-Trace two fewer.
_STATUS = {
    "sol-execbench": frozenset(Status) - {Status.UNSUPPORTED},
    "flashinfer-trace": frozenset(Status) - {Status.UNSUPPORTED, Status.REWARD_HACK, Status.INVALID_REFERENCE},
}


@dataclass(frozen=True)
class Observed:
    """One trace; ``problem``: the key that its set names, null in a plain file of traces."""

    trace: Trace
    problem: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a note calls it."""
        return f"{self.problem or self.trace.definition}: {self.trace.workload}: {self.trace.solution}"

    def about(self, problem: Problem) -> bool:
        """Whether it is a trace of ``problem``."""
        return problem.key == self.problem if self.problem else problem.definition.name == self.trace.definition


def read_traces(path: Path, notes: Notes) -> list[Observed]:
    """Traces of a measurement set, or of a file that ``solbench evaluate --trace-output`` wrote."""
    if path.is_symlink() or not path.is_file():
        raise InputError(str(path), "no such regular file")
    with path.open("rb") as file:
        is_set = SET_SCHEMA.encode() in file.readline(1 << 20)
    if not is_set:
        return [Observed(Trace.load(value, where)) for where, value in read_json_lines(path)]
    from solbench.evaluate.recording import read_set

    header, records = read_set(path)
    for _, record in records:
        if isinstance(record, Omission):
            notes.loss(f"{path.name}: {record.definition}: {record.workload}", f"not attempted: {record.reason}")
    environment = _environment(header)
    return [Observed(record, key, environment) for key, record in records if isinstance(record, Trace)]


def trace_out(
    seen: Observed, workloads: Mapping[str, dict[str, Any]], problem: Problem, form: str, notes: Notes
) -> tuple[str, dict[str, Any]] | None:
    """(author of the solution, their trace); None, and a note, for a row that their presence rules cannot hold."""
    trace, where = seen.trace, seen.name
    workload = workloads.get(trace.workload)
    if workload is None:
        notes.unsupported(where, "trace of a workload that is not exported")
        return None
    if trace.status not in _STATUS[form]:
        notes.unsupported(where, f"{form} has no status {trace.status}")
        return None
    if trace.status is Status.PASSED and trace.timing is None:
        notes.unsupported(where, f"{form} has no PASSED without a time")
        return None
    if trace.status is Status.INCORRECT_NUMERICAL and trace.correctness is None:
        notes.unsupported(where, f"{form} has no INCORRECT_NUMERICAL without its errors")
        return None
    notes.loss(problem.key, "traces: no time stamp is kept here; it is left empty")
    notes.loss(problem.key, "traces: digests, labels, samples and single checks become medians and the worst error")
    evaluation: dict[str, Any] = {
        "status": str(trace.status),
        "environment": {"hardware": seen.environment.get("hardware", trace.target), "libs": _libraries(seen)},
        "timestamp": "",
        "log": "\n".join(text for text in (trace.reason, trace.log) if text),
        "correctness": _correctness(trace.correctness) if trace.correctness else None,
        "performance": _performance(trace.timing, where) if trace.timing else None,
    }
    authors = {solution.name: solution.author for solution in problem.solutions}
    value = {"definition": trace.definition, "workload": workload, "solution": trace.solution, "evaluation": evaluation}
    return authors.get(trace.solution, "unknown"), value


def _environment(header: SetHeader) -> dict[str, str]:
    name = header.device.get("model")
    return {**header.environment, "hardware": name if isinstance(name, str) else header.target}


def _libraries(seen: Observed) -> dict[str, str]:
    return {name: value for name, value in seen.environment.items() if name != "hardware"}


def _correctness(correctness: Correctness) -> dict[str, Any]:
    worst = {
        name: max((value for check in correctness.checks if (value := getattr(check, name)) is not None), default=0.0)
        for name in ("max_relative_error", "max_absolute_error")
    }
    flags = {name: any(getattr(check, name) for check in correctness.checks) for name in ("has_nan", "has_inf")}
    return {**worst, **flags, "extra": None}


def _performance(timing: Timing, where: str) -> dict[str, float]:
    candidate, baseline = (estimate(sets, where).point_s for sets in (timing.candidate, timing.baseline))
    if candidate <= 0 or baseline <= 0:
        raise InputError(where, "a time that is not positive cannot be exported")
    return {
        "latency_ms": candidate * 1e3,
        "reference_latency_ms": baseline * 1e3,
        "speedup_factor": baseline / candidate,
    }
