"""References between artifacts: an object with exactly kind, digest and size, wherever it stands in an artifact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from solbench import canonical
from solbench.store import Descriptor

FIELDS: Final = frozenset({"kind", "digest", "size"})
# Weaker than what we use; naming one of them is a downgrade. Any other name is simply not known here.
_DOWNGRADES: Final = frozenset({"md5", "sha1", "sha256", "crc32", "crc32c", "adler32", "blake2b", "blake2s"})


def candidates(value: Any) -> Iterator[dict[str, Any]]:
    """Every reference in a parsed artifact, well-formed or not, in the order of the text."""
    stack = [value] if isinstance(value, (dict, list)) else []
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if item.keys() == FIELDS and isinstance(item["digest"], str):
                yield item
            else:
                stack.extend(reversed([below for below in item.values() if isinstance(below, (dict, list))]))
        else:
            stack.extend(reversed([below for below in item if isinstance(below, (dict, list))]))


def problem(value: dict[str, Any]) -> tuple[str, object, object] | None:
    """(code, expected, found) for a reference that is not well-formed, or None."""
    kind, digest, size = value["kind"], value["digest"], value["size"]
    if type(size) is int and size >= 0 and canonical.is_digest(digest) and kind and isinstance(kind, str):
        return None
    if not isinstance(kind, str) or not kind:
        return "media-type", "the name of a kind", kind
    algorithm, separator, _ = digest.partition(":")
    if separator and algorithm != "blake3" and re.fullmatch(r"[a-z0-9_-]{1,20}", algorithm):
        return ("algorithm" if algorithm in _DOWNGRADES else "algorithm-unknown"), "blake3", algorithm
    if not canonical.is_digest(digest):
        return "digest-format", "blake3: and 64 lower-case hex digits", digest
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        return "size-format", "an integer from 0 to 2^53-1", size
    return None


def in_artifact(data: bytes, value: Any) -> list[Descriptor]:
    """The well-formed references of one artifact; ``data`` are its bytes."""
    if b'"digest"' not in data:
        return []
    return [Descriptor(c["kind"], c["digest"], c["size"]) for c in candidates(value) if problem(c) is None]
