"""Canonical JSON (RFC 8785) and content digests (BLAKE3-256).

Every manifest in the store is written by :func:`dumps` and read by :func:`loads`; the two are inverse to the byte.
"""

from __future__ import annotations

import json
import re
from typing import Any

import rfc8785
from blake3 import blake3

from solbench.errors import IntegrityError

MAX_DEPTH = 64
_DIGEST = re.compile(r"blake3:[0-9a-f]{64}\Z")


def dumps(value: Any) -> bytes:
    """RFC 8785 bytes; :class:`IntegrityError` for NaN, infinities, |int| > 2^53-1, lone surrogates."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise IntegrityError(f"value has no canonical form: {error}") from None


def parse(data: bytes, where: str = "manifest") -> Any:
    """Strict JSON: UTF-8 without BOM, no duplicate keys, no NaN, at most ``MAX_DEPTH`` levels."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise IntegrityError(f"{where}: not UTF-8 at byte {error.start}") from None
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{where}: {error}") from None
    _check_depth(value, where)
    return value


def loads(data: bytes, where: str = "manifest") -> Any:
    """Parse, and require that the bytes are exactly the canonical form of what they say."""
    value = parse(data, where)
    if dumps(value) != data:
        raise IntegrityError(f"{where}: bytes are not in canonical form (RFC 8785)")
    return value


def digest(data: bytes) -> str:
    """``blake3:<64 hex>`` of the bytes as stored; ``b3sum`` prints the same hex."""
    return "blake3:" + blake3(data).hexdigest()


def derived_key(purpose: str, value: Any) -> str:
    """Identity of a value that is not a file: BLAKE3 in key-derivation mode, so it never equals a file's digest."""
    return blake3(dumps(value), derive_key_context=f"solbench 2026 {purpose} v1").hexdigest()


def is_digest(text: object) -> bool:
    """Whether ``text`` is a full-length lower-case BLAKE3 digest with its prefix."""
    return isinstance(text, str) and _DIGEST.match(text) is not None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"duplicate key {key!r}")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: Any, where: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise IntegrityError(f"{where}: nested deeper than {MAX_DEPTH} levels")
