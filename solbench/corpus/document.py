"""Reading the files of a problem: regular files only, plain data only, errors that name file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.yaml12 import parse_yaml

MAX_BYTES = 8 * 2**20


def read_text(path: Path) -> str:
    """UTF-8 text of a regular file; a missing file, a symbolic link and an overlong file are :class:`InputError`."""
    if path.is_symlink():
        raise InputError(str(path), "is a symbolic link; put the file itself here")
    if not path.is_file():
        raise InputError(str(path), "no such file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise InputError(str(path), f"is longer than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not UTF-8 at byte {error.start}") from None


def read_yaml(path: Path) -> Any:
    """Plain value of a YAML file that means the same to YAML 1.1 and 1.2."""
    return parse_yaml(read_text(path).encode(), str(path))


def read_json(path: Path) -> Any:
    """Plain value of a strict JSON file: no duplicate keys, no NaN."""
    return _parse_json(read_text(path), str(path))


def read_json_lines(path: Path) -> list[tuple[str, Any]]:
    """(where, value) of each non-empty line of a JSONL file."""
    return [
        (f"{path}: line {number}", _parse_json(line, f"{path}: line {number}"))
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]


def _parse_json(text: str, where: str) -> Any:
    try:
        return canonical.parse(text.encode(), where)
    except IntegrityError as error:
        raise InputError(where, str(error).removeprefix(f"{where}: ")) from None
