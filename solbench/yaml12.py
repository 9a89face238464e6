"""YAML that means the same to every reader.

DVC reads YAML 1.2, PyYAML reads 1.1: ``1e-5``, ``yes``, ``010``, an unquoted date differ. Files that people write for
us are refused where the two disagree, and where YAML does more than data: anchors, aliases, tags, duplicate keys.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from solbench.errors import InputError

MAX_BYTES = 64 * 2**20
_SWITCH = re.compile(r"(?i:yes|no|on|off)\Z")
_EXPONENT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+\Z")
_FLOAT_11 = re.compile(r"[-+]?\d+\.\d*([eE][-+]\d+)?\Z")
_OCTAL = re.compile(r"[-+]?0[0-9_]+\Z")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?\Z")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([Tt ].*)?\Z")
_UNDERSCORED = re.compile(r"[-+]?[0-9][0-9]*_[0-9_]*\Z")


def load_yaml(path: Path) -> Any:
    """Parse ``path``; :class:`InputError` names the file and line of the first construct that is not plain data."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(str(path), "no such file") from None
    if len(data) > MAX_BYTES:
        raise InputError(str(path), f"larger than {MAX_BYTES} bytes")
    return parse_yaml(data, str(path))


def parse_yaml(data: bytes, where: str) -> Any:
    """As :func:`load_yaml`, for bytes."""
    try:
        text = data.decode("utf-8")
        for event in yaml.parse(text, Loader=_LOADER):
            _lint(event, where)
        return yaml.load(text, Loader=_UniqueKeys)
    except UnicodeDecodeError as error:
        raise InputError(where, f"not UTF-8 at byte {error.start}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InputError(f"{where}:{line}", error.problem or "not YAML") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(where, f"not YAML: {error}".splitlines()[0]) from None


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeys(_LOADER):  # type: ignore[misc]
    """Safe loader that refuses a key twice in one mapping."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str) or key in seen:
                problem = "appears twice" if isinstance(key, str) else "is not text; quote it"
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} {problem}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _lint(event: Any, where: str) -> None:
    line = f"{where}:{event.start_mark.line + 1}"
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise InputError(line, "anchors and aliases are not plain data; write the value out")
    if getattr(event, "tag", None) and not isinstance(event, yaml.DocumentStartEvent):
        raise InputError(line, f"tag {event.tag} is not plain data")
    if not isinstance(event, yaml.ScalarEvent) or event.style:
        return
    value = event.value
    if _SWITCH.match(value):
        raise InputError(line, f"{value!r} is text to one YAML reader and true/false to another; quote it")
    if _EXPONENT.match(value) and not _FLOAT_11.match(value):
        raise InputError(line, f"{value!r} is text to one YAML reader; write a dot and a signed exponent (1.0e-5)")
    if _OCTAL.match(value):
        raise InputError(line, f"{value!r} is octal to one YAML reader; drop the leading zero or quote it")
    if _SEXAGESIMAL.match(value) or _DATE.match(value) or _UNDERSCORED.match(value):
        raise InputError(line, f"{value!r} is a time or number to one YAML reader; quote it")
