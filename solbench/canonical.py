"""Canonical JSON (RFC 8785) and content digests (BLAKE3-256).

Every manifest in the store is written by :func:`dumps` and read by :func:`loads`; the two are inverse to the byte.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any

import orjson
import rfc8785
from blake3 import blake3

from solbench.errors import IntegrityError

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
_DIGEST = re.compile(r"blake3:[0-9a-f]{64}\Z")
# Possessive, and an unterminated string runs to the end: linear on any input.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ROUND = bytes.maketrans(b"[{]}", b"(())")
_STEP = {ord("("): 1, ord(")"): -1}
# A whole number that may be too long for a double to hold exactly.
_LONG_INTEGER = re.compile(rb"(?<![.0-9])[0-9]{16,}+(?!\.)")
_EXPONENT = re.compile(rb"e([-+]?)([0-9]+)")
# A number up to its exponent, and the longest: a sign, seventeen digits, a point, and what stands before it.
_MANTISSA = re.compile(rb"(?:\A|(?<=[:,\[]))(-?)([0-9])(?:\.([0-9]+))?\Z")
_LONGEST_MANTISSA = 20
# How a number ends that is whole and written as a float.
_WHOLE_FLOAT = (b".0,", b".0]", b".0}")
_BEYOND_BASIC_PLANE = re.compile(rb"[\xf0-\xf7]")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
_WRITER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)
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
    if data.startswith(b"\xef\xbb\xbf") or b"\0" in data:
        raise MalformedError("json-encoding", where, "not plain UTF-8: it has a byte order mark or NUL bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError("json-encoding", where, f"not UTF-8 at byte {error.start}") from None
    # Before parsing: what is nested deeply must not reach a recursive parser.
    if _depth(data) > MAX_DEPTH:
        raise MalformedError("limit-depth", where, f"nested deeper than {MAX_DEPTH} levels")
    integer = _integer if _has_long_integer(data) else None
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=integer
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


def loads(data: bytes, where: str = "manifest") -> Any:
    """Parse, and require that the bytes are exactly the canonical form of what they say (code ``json-canonical``)."""
    return read(data, where)[0]


def read(data: bytes, where: str = "manifest") -> tuple[Any, bytes | None]:
    """As :func:`loads`, and :func:`rewritten` of the value, where that is known."""
    found = _same_as_rewritten(data)
    if found is not None:
        return found
    value = parse(data, where)
    if dumps(value) != data:
        raise MalformedError("json-canonical", where, "bytes are not in canonical form (RFC 8785)")
    return value, None


def rewritten(value: Any) -> bytes:
    """Compact JSON with sorted keys by orjson: the same bytes for the same value, of a value that came from JSON.

    Not canonical: some floats are spelled in another way, and 1.0 is not 1. TypeError for an integer of more than 64
    bits or a key that is no string.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def written(value: Any) -> str:
    """Compact JSON with sorted keys by Python's own writer: quick, and the same text for the same value.

    Not canonical: it spells floats in its own way, and 1.0 is not 1. ValueError for NaN and infinities.
    """
    return _WRITER.encode(value)


def loads_again(data: bytes) -> Any:
    """The value of bytes that :func:`loads` has accepted before, without any check."""
    return json.loads(data, parse_int=_integer) if _has_long_integer(data) else orjson.loads(data)


def loads_plain(data: bytes) -> Any:
    """The value of bytes of which :func:`read` has given the value as rewritten, without any check."""
    return orjson.loads(data)


def digest(data: bytes) -> str:
    """``blake3:<64 hex>`` of the bytes as stored; ``b3sum`` prints the same hex."""
    return "blake3:" + blake3(data).hexdigest()


def derived_key(purpose: str, value: Any) -> str:
    """Identity of a value that is not a file: BLAKE3 in key-derivation mode, so it never equals a file's digest."""
    return blake3(dumps(value), derive_key_context=f"solbench 2026 {purpose} v1").hexdigest()


def is_digest(text: object) -> bool:
    """Whether ``text`` is a full-length lower-case BLAKE3 digest with its prefix."""
    return isinstance(text, str) and _DIGEST.match(text) is not None


def _same_as_rewritten(data: bytes) -> tuple[Any, bytes] | None:
    """The value of ``data``, and that rewritten, where this shows that ``data`` is canonical; else None.

    What is written back is the text itself: so no key came twice or out of order, nothing was escaped that need not
    be, and nothing stood between the tokens. orjson's form differs from RFC 8785 in long integers, in the order of keys
    beyond the basic plane, and in the spelling of some floats; these are looked for outside of strings.
    """
    outside = _outside_strings(data)
    if b"0" * 16 in outside.translate(_DIGITS_AS_ZERO) and _beyond_integers(outside):
        return None
    if any(end in outside for end in _WHOLE_FLOAT) or outside.endswith(b".0") or _depth(outside) > MAX_DEPTH:
        return None
    if not data.isascii() and _BEYOND_BASIC_PLANE.search(data):
        return None
    try:
        value = orjson.loads(data)
        again = rewritten(value)
    except (ValueError, TypeError):
        return None
    if not all(map(_is_plain_exponent, _EXPONENT.findall(outside))):
        return None
    # Where a string is respelled too the result differs from what was read, and the slow way decides.
    return (value, again) if again == data or _respelled(again) == data else None


def _is_plain_exponent(found: tuple[bytes, bytes]) -> bool:
    """Whether RFC 8785 has an exponent of this sign and these digits, wherever a double needs one."""
    sign, digits = found
    if sign not in (b"-", b"+") or digits.startswith(b"0") or len(digits) > 3:
        return False
    return int(digits) >= (7 if sign == b"-" else 21)


def _respelled(again: bytes) -> bytes:
    """As orjson wrote it, but with the numbers from 1e-6 to 1e-5 as in RFC 8785: 0.0000015 for its 1.5e-6."""
    pieces = again.split(b"e-6")
    for place, (piece, following) in enumerate(itertools.pairwise(pieces)):
        found = _MANTISSA.search(piece, max(0, len(piece) - _LONGEST_MANTISSA))
        if found is None or following[:1] not in (b"", b",", b"]", b"}"):
            pieces[place] += b"e-6"
        else:
            pieces[place] = piece[: found.start()] + found[1] + b"0.00000" + found[2] + (found[3] or b"")
    return b"".join(pieces)


def _has_long_integer(data: bytes) -> bool:
    # Sixteen digits in a row are soon found, and rarely there but in a digest.
    return b"0" * 16 in data.translate(_DIGITS_AS_ZERO) and _beyond_integers(_outside_strings(data))


def _beyond_integers(outside: bytes) -> bool:
    return any(len(number) > 16 or int(number) > MAX_INTEGER for number in _LONG_INTEGER.findall(outside))


def _outside_strings(data: bytes) -> bytes:
    if b"\\" in data:
        return _STRING.sub(b"", data)
    return b"".join(data.split(b'"')[::2])


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


def _integer(text: str) -> int | float:
    value = int(text)
    return value if abs(value) <= MAX_INTEGER else _finite(text)


def _depth(data: bytes) -> int:
    """Deepest nesting of brackets outside strings; a malformed text is the parser's to refuse."""
    opened = data.count(b"[") + data.count(b"{")
    if opened <= MAX_DEPTH:
        return opened  # or less, which is as good
    brackets = left = _outside_strings(data).translate(_ROUND, _NOT_BRACKETS)
    # Each turn takes away the innermost level of every branch: a well-formed text is gone after as many as it is deep.
    for turn in range(MAX_DEPTH + 1):
        if not left:
            return turn
        left = left.replace(b"()", b"")
    return max(itertools.accumulate(map(_STEP.__getitem__, brackets)))
