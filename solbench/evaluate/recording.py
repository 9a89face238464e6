"""Measurement sets on disk: JSONL, a header, one trace or omission a line, a footer with their number.

While it is being written a set is ``<name>.jsonl.partial``: each line is appended whole and synced, so that a kill
loses at most the record being made. Processes that measure at the same time write a part each,
``<name>.jsonl.part-<card>``. The next writer gathers all that is there into ``.partial``, without torn last lines, and
goes on. The footer completes the set and gives it its name.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.evaluate.growing import Growing, held, whole_lines
from solbench.evaluate.merging import Key, Line, Record, by_card, distinct, is_left, require_same, united
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.workspace import write_file, writing

MAX_LINE_BYTES = 4 << 20


def read_header(path: Path) -> SetHeader:
    """Header of a complete or partial set."""
    with path.open("rb") as file:
        return _header(file.readline(MAX_LINE_BYTES), str(path))


def read_set(path: Path) -> tuple[SetHeader, list[tuple[str, Record]]]:
    """Header and (problem key, record) of a complete set; :class:`InputError` when it is torn, short or doubled."""
    header, lines = read_lines(path)
    return header, [(line.problem, line.record) for line in lines]


def read_lines(path: Path) -> tuple[SetHeader, list[Line]]:
    """Like :func:`read_set`, each record with its bytes."""
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        raise InputError(str(path), "the last line is torn; the set is not complete")
    header, lines, footer = _parsed(data, path)
    if footer is None:
        raise InputError(str(path), "has no footer; the set is not complete")
    if footer != {"record": "footer", "count": len(lines)}:
        number = len(lines) + 2
        raise InputError(f"{path}: line {number}", f"the footer must count {len(lines)} records and say no more")
    if len({line.key for line in lines}) != len(lines):
        raise InputError(str(path), "two records are about the same workload and solution")
    known = {card["uuid"] for card in header.cards}
    for line in lines:
        if isinstance(line.record, Trace) and line.record.card is not None and line.record.card not in known:
            raise InputError(f"{line.where}: card", "is not among the cards of the header")
    return header, lines


def merge_sets(paths: Sequence[Path], out: Path) -> tuple[int, int]:
    """Write the complete sets ``paths`` as one set ``out``, sorted by problem, workload and solution, whole or not at
    all. How many records it has, and on how many cards they were taken (0 where there is no card).

    :class:`InputError` where sets are not comparable or contradict each other, or ``out`` is there and none of them.
    """
    if out.exists() and not any(out.samefile(path) for path in paths):
        raise InputError(f"--out {out}", "is there already, and is none of the sets to merge")
    found = [read_lines(path) for path in paths]
    for path, (header, _) in zip(paths[1:], found[1:], strict=True):
        require_same(header, found[0][0], f"{path} and {paths[0]}")
    header = united([header for header, _ in found])
    lines = distinct(line for _, lines in found for line in lines)
    lines.sort(key=lambda line: (line.key.problem, line.key.workload, line.key.solution))
    footer = _line({"record": "footer", "count": len(lines)})
    with writing(str(out)):
        write_file(out, b"".join((_header_line(header), *(line.data for line in lines), footer)))
    return len(lines), len(header.cards)


class Appender(Growing):
    """A file of records that grows, alone: a second process is refused."""

    def __init__(self, path: Path, header: SetHeader) -> None:
        """Begin ``path``. Each trace is given the card of ``header``, if there is one."""
        super().__init__(path)
        self.header = by_card(header)
        self.finished: set[Key] = set()
        self._card = self.header.cards[0]["uuid"] if len(self.header.cards) == 1 else None
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        if os.fstat(self._handle).st_size:
            raise InputError(str(self.path), "is there already")
        self.append(_header_line(self.header))

    def add(self, problem: str, record: Record) -> None:
        """Append one record and sync it. :class:`UndecidedError` when it cannot be written; nothing of it stays."""
        if isinstance(record, Trace) and self._card is not None:
            record = record.model_copy(update={"card": self._card})
        key = Key(problem, record.workload, record.solution)
        if key in self.finished:
            raise IntegrityError(f"{self.path}: a second record of {key}")
        kind = "trace" if isinstance(record, Trace) else "omission"
        self.append(_line({"record": kind, "problem": problem, **record.as_dict()}))
        self.finished.add(key)


class Writer(Appender):
    """Writes the set at ``target``: gathers what earlier runs left of it, and goes on."""

    def __init__(self, target: Path, header: SetHeader) -> None:
        """``finished`` are the records that are already there: of a complete set at ``target``, of
        ``<target>.partial``, of parts. Omissions for want of time are not among them, and are dropped.

        :class:`InputError` when what is there was begun under another header, or has two records of one workload and
        solution; :class:`UndecidedError` when another process is measuring into it, or it cannot be written.
        """
        self.target = target
        super().__init__(target.with_name(f"{target.name}.partial"), header)

    def _begin(self) -> None:
        self.gather()

    def part(self, name: str) -> Path:
        """Where another process of this run may append until the next :meth:`gather`."""
        return self.target.with_name(f"{self.target.name}.part-{name}")

    def gather(self) -> None:
        """Bring what is there of this set into ``.partial``, and remove the parts."""
        with contextlib.ExitStack() as stack:
            sources = [self.target] if self.target.exists() else []
            parts = sorted(self.target.parent.glob(f"{glob.escape(self.target.name)}.part-*"))
            handles = {self.path: self._handle, **{part: stack.enter_context(held(part)) for part in parts}}
            grown = {path: whole_lines(handle) for path, handle in handles.items()}
            found = [(path, *read_lines(path)) for path in sources]
            found += [(path, *_parsed(data, path)[:2]) for path, data in grown.items() if data]
            for path, header, _ in found:
                require_same(header, self.header, f"{path} and now", "name another file, or remove this one")
            self.header = united([*(header for _, header, _ in found), self.header])
            lines = [line for line in distinct(line for *_, lines in found for line in lines) if not is_left(line)]
            self.finished = {line.key for line in lines}
            content = b"".join((_header_line(self.header), *(line.data for line in lines)))
            self.rewrite(content)
            for part in parts:
                os.unlink(part)

    def complete(self) -> None:
        """Write the footer and give the set its name."""
        self.append(_line({"record": "footer", "count": len(self.finished)}))
        self.rename(self.target)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode() + b"\n"


def _header_line(header: SetHeader) -> bytes:
    return _line({"record": "header", **header.as_dict()})


def _parsed(data: bytes, path: Path) -> tuple[SetHeader, list[Line], dict[str, Any] | None]:
    """Header, records and footer (None without one) of whole lines."""
    first, *rest = [line + b"\n" for line in data.split(b"\n")[:-1]] or [b""]
    header, lines, footer = _header(first, str(path)), [], None
    for number, line in enumerate(rest, start=2):
        where = f"{path}: line {number}"
        value = _parse(line, where)
        if value.get("record") == "footer" and number == len(rest) + 1:
            footer = value
            continue
        lines.append(_record(value, line, where))
    return header, lines, footer


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = canonical.parse(line, where)
    except IntegrityError as error:
        raise InputError(where, str(error).removeprefix(f"{where}: ")) from None
    if not isinstance(value, dict):
        raise InputError(where, "must be a JSON object")
    return value


def _header(line: bytes, where: str) -> SetHeader:
    value = _parse(line, f"{where}: line 1")
    if value.pop("record", None) != "header":
        raise InputError(f"{where}: line 1", "must be the header of a measurement set")
    return SetHeader.load(value, f"{where}: line 1")


def _record(value: dict[str, Any], data: bytes, where: str) -> Line:
    kind, problem = value.pop("record", None), value.pop("problem", None)
    if not isinstance(problem, str) or kind not in ("trace", "omission"):
        raise InputError(where, "must be a trace or an omission and name its problem")
    contract: Any = Trace if kind == "trace" else Omission
    return Line(problem, contract.load(value, where), data, where)
