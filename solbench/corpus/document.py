"""Reading YAML and JSON that others wrote: plain data only, one meaning a file, errors with the line.

YAML is read with the scalars of its core schema 1.2 (``on`` is text, ``1e-5`` is a number, ``010`` is text), without
anchors, aliases, tags or merge keys, with string keys that occur once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.events import AliasEvent
from yaml.nodes import MappingNode, Node, ScalarNode

from solbench import canonical
from solbench.errors import InputError, IntegrityError

MAX_BYTES = 8 * 2**20


def read_text(path: Path) -> str:
    """UTF-8 text of a regular file; a missing file, a symbolic link and an overlong file are :class:`InputError`."""
    if path.is_symlink():
        raise InputError(str(path), "is a symbolic link; put the file itself here")
    if not path.is_file():
        raise InputError(str(path), "no such file")
    if path.stat().st_size > MAX_BYTES:
        raise InputError(str(path), f"is longer than {MAX_BYTES} bytes")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from None


def read_yaml(path: Path) -> Any:
    """Plain value of a YAML file."""
    try:
        return yaml.load(read_text(path), Loader=_PlainLoader)  # noqa: S506 (a SafeLoader with fewer features)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}: line {mark.line + 1}" if mark else str(path)
        raise InputError(where, str(error.problem)) from None
    except yaml.YAMLError as error:
        raise InputError(str(path), " ".join(str(error).split())) from None
    except RecursionError:
        raise InputError(str(path), "is nested too deeply") from None


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


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader without aliases, anchors, tags, duplicate keys and the scalar guesses of YAML 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(None, None, "anchors and aliases are not allowed", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(None, None, "tags are not allowed", event.start_mark)
        return super().compose_node(parent, index)  # type: ignore[no-any-return]

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, ScalarNode) or not key.tag.endswith(":str"):
                raise yaml.MarkedYAMLError(None, None, "a key must be text", key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: ScalarNode) -> float:
        value = float(node.value)
        if not math.isfinite(value):
            raise yaml.MarkedYAMLError(None, None, f"{node.value} is not a finite number", node.start_mark)
        return value

    def construct_decimal(self, node: ScalarNode) -> int:
        if len(node.value) > 40:
            raise yaml.MarkedYAMLError(None, None, "this integer has too many digits", node.start_mark)
        return int(node.value)


# The number rules are tried before the text default; a leading zero is text, as in JSON.
for _tag, _pattern, _first in (
    ("null", r"(?:null|~|)", ["n", "~", ""]),
    ("bool", r"(?:true|false)", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
):
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)
_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_decimal)
_PlainLoader.add_constructor("tag:yaml.org,2002:float", _PlainLoader.construct_number)
