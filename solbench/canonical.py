"""Canonical JSON (RFC 8785) and content digests (BLAKE3-256).

Every manifest in the store is written by :func:`dumps` and read by :func:`loads`; the two are inverse to the byte.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

import rfc8785
from blake3 import blake3

from solbench.errors import IntegrityError

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
_DIGEST = re.compile(r"blake3:[0-9a-f]{64}\Z")
# Possessive, and an unterminated string runs to the end: linear on any input.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# A number whose integral part is too long for a double to hold exactly, and some strings that look like one.
_LONG_INTEGER = re.compile(rb"(?:^|[:,\[\s])-?[0-9]{16}")
_WITH_EXPONENT = re.compile(r"(?<=[:,\[])-?[0-9](?:\.[0-9]+)?e[-+][0-9]+(?=[,\]}])")
_BEYOND_BASIC_PLANE = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class MalformedError(IntegrityError):
    """Bytes that are not the JSON we write; ``code`` is the stable name of the broken rule."""

    def __init__(self, code: str, where: str, rule: str) -> None:
        super().__init__(f"{where}: {rule}")
        self.code = code


class _DuplicateKeyError(ValueError):
    pass


def dumps(value: Any) -> bytes:
    """RFC 8785 bytes; :class:`IntegrityError` for NaN, infinities, |int| > 2^53-1, lone surrogates, cycles."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise IntegrityError(f"value has no canonical form: {error}") from None


def parse(data: bytes, where: str = "manifest") -> Any:
    """Strict JSON: UTF-8 without BOM, no duplicate keys, no NaN, at most ``MAX_DEPTH`` levels.

    An integer beyond ±(2^53-1) comes back as the double that RFC 8785 takes it for. Raises :class:`MalformedError`
    with code ``json-encoding``, ``json-syntax``, ``json-duplicate-key`` or ``limit-depth``.
    """
    return _parse(data, where, _finite, _LONG_INTEGER.search(data) is not None)


def loads(data: bytes, where: str = "manifest") -> Any:
    """Parse, and require that the bytes are exactly the canonical form of what they say (code ``json-canonical``)."""
    # Python's own writer gives the same answer several times sooner: it differs from RFC 8785 in long integers, in
    # the order of keys beyond the basic plane, and in the spelling of some floats, which are collected while reading.
    spellings: dict[str, str] = {}
    alike = True

    def number(text: str) -> float:
        nonlocal alike
        result = _finite(text)
        python = repr(result)
        if python != text or "e" in text or text.endswith(".0"):
            if _ecmascript(python) == text:
                spellings[python] = text
            else:
                alike = False
        return result

    long_integers = _LONG_INTEGER.search(data) is not None
    value = _parse(data, where, number, long_integers)
    if not (alike and not long_integers and _python_json(value, spellings) == data) and dumps(value) != data:
        raise MalformedError("json-canonical", where, "bytes are not in canonical form (RFC 8785)")
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


def _parse(data: bytes, where: str, number: Callable[[str], float], long_integers: bool) -> Any:
    if data.startswith(b"\xef\xbb\xbf") or b"\0" in data:
        raise MalformedError("json-encoding", where, "not plain UTF-8: it has a byte order mark or NUL bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError("json-encoding", where, f"not UTF-8 at byte {error.start}") from None
    # Before parsing: what is nested deeply must not reach a recursive parser.
    if _depth(data) > MAX_DEPTH:
        raise MalformedError("limit-depth", where, f"nested deeper than {MAX_DEPTH} levels")
    integer = _integer if long_integers else None
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=number, parse_int=integer
        )
    except _DuplicateKeyError as error:
        raise MalformedError("json-duplicate-key", where, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise MalformedError("json-syntax", where, str(error)) from None
    if b"\\u" in data and _SURROGATE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise MalformedError("json-encoding", where, "a string holds a lone surrogate") from None
    return value


def _python_json(value: Any, spellings: Mapping[str, str]) -> bytes | None:
    """What Python writes, floats spelled as they were read; None where its order of keys may be another."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if not text.isascii() and _BEYOND_BASIC_PLANE.search(text):
        return None
    if spellings:
        # Where this hits inside a string the result differs from what was read, and the slow way decides.
        text = _WITH_EXPONENT.sub(lambda match: spellings.get(match[0], match[0]), text)
    return text.encode()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(f"duplicate key {key!r}")
            seen.add(key)
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond the range of a double")
    return value


def _ecmascript(python: str) -> str:
    """RFC 8785's spelling of a finite double, from the shortest digits that Python's ``repr`` gives."""
    mantissa, _, exponent = python.partition("e")
    if not exponent:
        plain = mantissa.removesuffix(".0")
        return "0" if plain == "-0" else plain
    sign = "-" if mantissa.startswith("-") else ""
    first, _, rest = mantissa.removeprefix("-").partition(".")
    digits = (first + rest).rstrip("0") if rest == "0" else first + rest
    power = int(exponent)
    if 0 < power < 21:
        return sign + digits + "0" * (power + 1 - len(digits))
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    point = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{point}e{power:+d}"


def _integer(text: str) -> int | float:
    value = int(text)
    return value if abs(value) <= MAX_INTEGER else _finite(text)


def _depth(data: bytes) -> int:
    """Deepest nesting of brackets outside strings; a malformed text is the parser's to refuse."""
    brackets = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
