"""Measurement sets on disk: JSONL, a header, one trace or omission a line, a footer with their number.

While it is being written a set is ``<name>.jsonl.partial``: each line is appended whole and synced, so that a kill
loses at most the record being made. The next writer drops a torn last line and goes on. The footer completes the set
and gives it its name.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from solbench import canonical
from solbench.errors import InputError, IntegrityError, UndecidedError
from solbench.model.trace import Omission, SetHeader, Trace

Record = Trace | Omission
MAX_LINE_BYTES = 4 << 20


@dataclass(frozen=True)
class Key:
    """What a record is about; a set holds each at most once."""

    problem: str
    workload: str
    solution: str


def read_header(path: Path) -> SetHeader:
    """Header of a complete or partial set."""
    with path.open("rb") as file:
        return _header(file.readline(MAX_LINE_BYTES), str(path))


def read_set(path: Path) -> tuple[SetHeader, list[tuple[str, Record]]]:
    """Header and (problem key, record) of a complete set; :class:`InputError` when it is torn, short or doubled."""
    lines = path.read_bytes().split(b"\n")
    if lines.pop() != b"":
        raise InputError(str(path), "the last line is torn; the set is not complete")
    header, records = _header(lines[0] if lines else b"", str(path)), []
    if len(lines) < 2 or _parse(lines[-1], f"{path}: line {len(lines)}").get("record") != "footer":
        raise InputError(str(path), "has no footer; the set is not complete")
    for number, line in enumerate(lines[1:-1], start=2):
        records.append(_record(line, f"{path}: line {number}"))
    footer = _parse(lines[-1], f"{path}: line {len(lines)}")
    if footer != {"record": "footer", "count": len(records)}:
        raise InputError(f"{path}: line {len(lines)}", f"the footer must count {len(records)} records and say no more")
    keys = [_key(problem, record) for problem, record in records]
    if len(set(keys)) != len(keys):
        raise InputError(str(path), "two records are about the same workload and solution")
    return header, records


class Writer:
    """Appends to one set, alone: a second writer is refused."""

    def __init__(self, path: Path, header: SetHeader) -> None:
        """Create or resume ``<path>.partial``; ``finished`` are the records that are already there.

        A complete set at ``path`` is taken back for resuming. :class:`InputError` when what is there was begun under
        another header.
        """
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self.finished: set[Key] = set()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _require_same(read_header(path), header, path)
            os.rename(path, self.partial)
        self._file: IO[bytes] = self.partial.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UndecidedError(f"{self.partial}: another process is measuring into it") from None
        try:
            self.header = self._resume(header)
        except BaseException:
            self._file.close()
            raise

    def _resume(self, header: SetHeader) -> SetHeader:
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            self._file.truncate(len(whole))
        lines = whole.split(b"\n")[:-1]
        if not lines:
            self._append({"record": "header", **header.as_dict()})
            return header
        begun = _header(lines[0], str(self.partial))
        _require_same(begun, header, self.partial)
        if len(lines) > 1 and _parse(lines[-1], str(self.partial)).get("record") == "footer":
            lines.pop()
            self._file.truncate(sum(len(line) + 1 for line in lines))
        for number, line in enumerate(lines[1:], start=2):
            self.finished.add(_key(*_record(line, f"{self.partial}: line {number}")))
        return begun

    def add(self, problem: str, record: Record) -> None:
        """Append one record and sync it."""
        key = _key(problem, record)
        if key in self.finished:
            raise IntegrityError(f"{self.partial}: a second record of {key.problem}/{key.workload}/{key.solution}")
        kind = "trace" if isinstance(record, Trace) else "omission"
        self._append({"record": kind, "problem": problem, **record.as_dict()})
        self.finished.add(key)

    def complete(self) -> None:
        """Write the footer and give the set its name."""
        self._append({"record": "footer", "count": len(self.finished)})
        os.rename(self.partial, self.path)
        handle = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _append(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _require_same(begun: SetHeader, header: SetHeader, path: Path) -> None:
    for name in ("target", "protocol", "harness", "environment", "device"):
        if _stable(begun, name) != _stable(header, name):
            raise InputError(f"{path}: {name}", "differs from what is measured now; name another file, or remove it")


def _stable(header: SetHeader, name: str) -> Any:
    """A field of the header without what is measured anew at every start."""
    value = header.as_dict()[name]
    return {key: item for key, item in value.items() if key != "floors"} if name == "device" else value


def _key(problem: str, record: Record) -> Key:
    return Key(problem, record.workload, record.solution)


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


def _record(line: bytes, where: str) -> tuple[str, Record]:
    value = _parse(line, where)
    kind, problem = value.pop("record", None), value.pop("problem", None)
    if not isinstance(problem, str) or kind not in ("trace", "omission"):
        raise InputError(where, "must be a trace or an omission and name its problem")
    contract: Any = Trace if kind == "trace" else Omission
    return problem, contract.load(value, where)
