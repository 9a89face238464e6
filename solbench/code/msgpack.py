"""MessagePack as AMDGPU notes hold it, read within limits.

Format: the MessagePack specification. Types that no such note has (floats, extensions) and anything beyond the
limits are errors, so that hostile bytes can neither crash nor occupy a reader.
"""

from __future__ import annotations

from typing import Any

from solbench.errors import InputError

MAX_DEPTH = 16
MAX_VALUES = 200_000
# First byte to (kind, bytes of the length that follows).
_SIZED = {
    0xC4: ("bytes", 1), 0xC5: ("bytes", 2), 0xC6: ("bytes", 4), 0xD9: ("text", 1), 0xDA: ("text", 2), 0xDB: ("text", 4),
    0xDC: ("array", 2), 0xDD: ("array", 4), 0xDE: ("map", 2), 0xDF: ("map", 4),
}  # fmt: skip
_INTEGERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}


def read(content: bytes, where: str) -> Any:
    """The one value that ``content`` starts with: None, bool, int, str, bytes, list or dict with text as keys."""
    return _Reader(content, where).value(0)


class _Reader:
    def __init__(self, content: bytes, where: str) -> None:
        self.content = content
        self.where = where
        self.place = 0
        self.values = 0

    def take(self, size: int) -> bytes:
        taken = self.content[self.place : self.place + size]
        if len(taken) < size:
            raise InputError(self.where, "MessagePack that ends early")
        self.place += size
        return taken

    def value(self, depth: int) -> Any:
        self.values += 1
        if depth > MAX_DEPTH or self.values > MAX_VALUES:
            raise InputError(self.where, f"MessagePack of more than {MAX_DEPTH} levels or {MAX_VALUES} values")
        first = self.take(1)[0]
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 256
        if first < 0x90:
            return self.sized("map", first & 15, depth)
        if first < 0xA0:
            return self.sized("array", first & 15, depth)
        if first < 0xC0:
            return self.sized("text", first & 31, depth)
        if first in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[first]
        if first in _INTEGERS:
            return int.from_bytes(self.take(_INTEGERS[first]), "big", signed=first >= 0xD0)
        if first in _SIZED:
            kind, length = _SIZED[first]
            return self.sized(kind, int.from_bytes(self.take(length), "big"), depth)
        raise InputError(self.where, f"MessagePack type {first:#x}, which no such note has")

    def sized(self, kind: str, size: int, depth: int) -> Any:
        if kind == "bytes":
            return self.take(size)
        if kind == "text":
            return self.take(size).decode("utf-8", "replace")
        if kind == "array":
            return [self.value(depth + 1) for _ in range(size)]
        found: dict[str, Any] = {}
        for _ in range(size):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in found:
                raise InputError(self.where, "MessagePack with a key that is no text, or twice")
            found[key] = self.value(depth + 1)
        return found
