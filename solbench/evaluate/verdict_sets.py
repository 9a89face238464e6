"""Recorded sets of verdicts on disk: ``measurements/verdicts/<target>.jsonl``.

A header (:class:`solbench.model.verdict.VerdictSetHeader`), a canonical line a verdict (a trace and its problem), a
footer with their number. The traces are of the emulated card, and have no times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.model.trace import Trace
from solbench.model.verdict import VerdictSetHeader


@dataclass(frozen=True, order=True)
class Key:
    """What a verdict is about: problem, solution and workload by name."""

    problem: str
    solution: str
    workload: str

    def __str__(self) -> str:
        return f"{self.problem}/{self.workload}  {self.solution}"


@dataclass(frozen=True)
class Judged:
    """One record of a set, and the bytes of its line."""

    key: Key
    trace: Trace
    data: bytes

    @classmethod
    def of(cls, problem: str, trace: Trace) -> Judged:
        key = Key(problem, trace.solution, trace.workload)
        return cls(key, trace, _line({"record": "verdict", "problem": problem, **trace.as_dict()}))


def read(path: Path) -> tuple[VerdictSetHeader, list[Judged]]:
    """A complete set; :class:`InputError` where it is none, or torn, short, doubled or not canonical."""
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        raise InputError(str(path), "the last line is torn; the set is not complete")
    header, records, count = parsed(data, str(path))
    if count != len(records):
        raise InputError(str(path), f"its footer must count {len(records)} verdicts; the set is not complete")
    return header, records


def written(header: VerdictSetHeader, records: Iterable[Judged], complete: bool) -> bytes:
    """A set as bytes, whose records are in the order of their keys; without its footer where it is not ``complete``."""
    ordered = sorted(records, key=lambda one: one.key)
    footer = [_line({"record": "footer", "count": len(ordered)})] if complete else []
    return b"".join((_line({"record": "header", **header.as_dict()}), *(one.data for one in ordered), *footer))


def parsed(data: bytes, where: str) -> tuple[VerdictSetHeader, list[Judged], int | None]:
    """Header, records and the footer's count (None without one) of whole lines."""
    lines = data.splitlines(keepends=True)
    first = _value(lines[0] if lines else b"", f"{where}: line 1")
    if first.pop("record", None) != "header":
        raise InputError(f"{where}: line 1", "must be the header of a set of verdicts")
    header = VerdictSetHeader.load(first, f"{where}: line 1")
    records: dict[Key, Judged] = {}
    for number, line in enumerate(lines[1:], start=2):
        value = _value(line, f"{where}: line {number}")
        kind = value.pop("record", None)
        if kind == "footer" and number == len(lines) and value.keys() == {"count"}:
            return header, list(records.values()), value["count"]
        one = _record(kind, value, line, header, f"{where}: line {number}")
        if one.key in records:
            raise InputError(f"{where}: line {number}", f"a second verdict of {one.key}")
        records[one.key] = one
    return header, list(records.values()), None


def _record(kind: Any, value: dict[str, Any], line: bytes, header: VerdictSetHeader, where: str) -> Judged:
    problem = value.pop("problem", None)
    if kind != "verdict" or not isinstance(problem, str):
        raise InputError(where, "must be a verdict and name its problem")
    trace = Trace.load(value, where)
    if trace.target != header.target or trace.timing is not None or trace.card is not None:
        raise InputError(where, f"must be an emulated verdict for {header.target}: no card, no time")
    return Judged(Key(problem, trace.solution, trace.workload), trace, line)


def _value(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = canonical.loads(line.removesuffix(b"\n"), where)
    except IntegrityError as error:
        raise InputError(where, str(error).removeprefix(f"{where}: ")) from None
    if not isinstance(value, dict):
        raise InputError(where, "must be a JSON object")
    return value


def _line(value: Mapping[str, Any]) -> bytes:
    return canonical.dumps(dict(value)) + b"\n"
