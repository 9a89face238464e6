"""Canonical JSON against RFC 8785's own examples, and the strictness that a reader of hostile bytes needs."""

import json
import math
import struct

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from solbench import canonical
from solbench.canonical import MalformedError
from solbench.errors import IntegrityError

# RFC 8785 appendix B: bits of a double, and its one spelling.
RFC_NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("aé😀\uff01z", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS.items())
def test_numbers_of_the_rfc(bits: str, text: str) -> None:
    value = struct.unpack(">d", bytes.fromhex(bits))[0]
    assert canonical.dumps(value) == text.encode()
    assert canonical.dumps(canonical.loads(text.encode())) == text.encode()


def test_example_of_the_rfc_sorts_and_spells() -> None:
    text = (
        r'{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],'
        r'"string":"\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}'
    ).replace(r"\'", "'")
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical.dumps(canonical.parse(text.encode())) == expected.encode()


def test_keys_sort_by_utf16_units() -> None:
    # RFC 8785 section 3.2.3: a character beyond the basic plane sorts by its surrogates, before U+FB33.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = canonical.dumps(dict.fromkeys(keys, 0))
    assert list(json.loads(written)) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert canonical.loads(written) == dict.fromkeys(keys, 0)


@given(json_values)
@example({"b": 1, "a": [1e-7, 1.5, "é"]})
def test_dumps_and_loads_are_inverse(value: object) -> None:
    data = canonical.dumps(value)
    assert canonical.loads(data) == value
    assert canonical.dumps(canonical.loads(data)) == data


@given(json_values, st.sampled_from(["plain", "indent", "ascii", "reversed"]))
def test_loads_accepts_exactly_the_canonical_bytes(value: object, how: str) -> None:
    options = {"plain": {}, "indent": {"indent": 1}, "ascii": {"separators": (",", ":")}, "reversed": {}}[how]
    if how == "reversed" and isinstance(value, dict):
        value = dict(reversed(value.items()))
    data = json.dumps(value, **options).encode()
    if data == rfc8785.dumps(json.loads(data)):
        assert canonical.loads(data) == json.loads(data)
    else:
        with pytest.raises(MalformedError) as caught:
            canonical.loads(data)
        assert caught.value.code == "json-canonical"


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".17g", ".1f", "e", "E", ".18e"]))
@example(1e-5, "r")
@example(1.0, "r")
@example(-0.0, "r")
@example(1e16, ".1f")
def test_other_spellings_of_a_float_are_refused(value: float, form: str) -> None:
    text = repr(value) if form == "r" else format(value, form)
    if text.encode() == rfc8785.dumps(float(text)):
        assert canonical.loads(text.encode()) == float(text)
    else:
        with pytest.raises(MalformedError):
            canonical.loads(text.encode())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"digest":"a","digest":"b"}', "json-duplicate-key"),
        (b'{"a":{"b":1,"c":2,"b":1}}', "json-duplicate-key"),
        (b'{"a":1,"\\u0061":2}', "json-duplicate-key"),
        (b"\xef\xbb\xbf{}", "json-encoding"),
        ("{}".encode("utf-16"), "json-encoding"),
        (b'"\xff"', "json-encoding"),
        (b'"\\ud800"', "json-encoding"),
        (b'{"\\udc00":1}', "json-encoding"),
        (b"{} ", "json-canonical"),
        (b"{}{}", "json-syntax"),
        (b"{}\n// note", "json-syntax"),
        (b"[1,]", "json-syntax"),
        (b"", "json-syntax"),
        (b"NaN", "json-syntax"),
        (b"-Infinity", "json-syntax"),
        (b"1e400", "json-syntax"),
        (b"[" * 65 + b"]" * 65, "limit-depth"),
        (b"[" * 2_000_000, "limit-depth"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "limit-depth"),
        (b'{"a": 1}', "json-canonical"),
        (b'{"b":1,"a":2}', "json-canonical"),
        (b'"\\u00e9"', "json-canonical"),
        (b'"\\/"', "json-canonical"),
        (b"-0", "json-canonical"),
        (b"1.0", "json-canonical"),
        (b"1E5", "json-canonical"),
        (b"1e-05", "json-canonical"),
        (b"9007199254740993", "json-canonical"),
    ],
)
def test_what_is_refused_and_its_code(data: bytes, code: str) -> None:
    with pytest.raises(MalformedError) as caught:
        canonical.loads(data, "x")
    assert caught.value.code == code
    assert str(caught.value).startswith("x: ")


def test_brackets_in_strings_do_not_nest() -> None:
    text = json.dumps({"a": '[{"' * 500 + "\\"}, separators=(",", ":")).encode()
    assert canonical.loads(text) == json.loads(text)
    assert canonical.parse(b"[" * 64 + b"]" * 64) is not None


def test_unbalanced_quotes_take_linear_time() -> None:
    with pytest.raises(MalformedError):
        canonical.parse(b'"' + b'\\"' * 1_000_000)


def test_a_large_integral_double_survives() -> None:
    data = canonical.dumps(2.0**60)
    assert data == b"1152921504606846976" or data == b"1152921504606847000"
    assert canonical.loads(data) == 2.0**60


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, -(2**53), "\ud800", {1: 2}, {"a": object()}])
def test_what_has_no_canonical_form(value: object) -> None:
    with pytest.raises(IntegrityError):
        canonical.dumps(value)


def test_digests() -> None:
    # The empty input's digest is in the BLAKE3 test vectors.
    empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    assert canonical.digest(b"") == f"blake3:{empty}"
    assert canonical.is_digest(f"blake3:{empty}")
    for wrong in (
        empty,
        f"blake3:{empty[:-1]}",
        f"blake3:{empty.upper()}",
        f"blake3:{empty}\n",
        f"md5:{empty}",
        None,
        1,
    ):
        assert not canonical.is_digest(wrong)


def test_a_derived_key_is_no_digest_of_a_file() -> None:
    assert canonical.derived_key("memo", {"a": 1}) != canonical.digest(canonical.dumps({"a": 1})).removeprefix(
        "blake3:"
    )
    assert canonical.derived_key("memo", {"a": 1}) != canonical.derived_key("other", {"a": 1})


LONG = "x" * 40_000
DIGITS = "1234567890123456" * 4


@pytest.mark.parametrize("padding", ["", LONG])
@pytest.mark.parametrize(
    ("text", "quick"),
    [
        ('{"a":"%s","b":1}', True),
        ('{"a":"%s","b":0.12345678901234568,"c":"blake3:' + DIGITS + '"}', True),
        ('{"a":"%s","b":1e-7,"c":"1e-07","d":",1e-07,"}', True),
        ('{"a":"%s","b":-0.0000015,"c":"1.5e-6"}', True),
        ('{"a":"%s","b":-0.0000015,"c":",1.5e-6,"}', False),
        ('{"a":"%s","b":9007199254740991}', True),
        ('{"a":"%s","b":1e-7,"c":"1e-07"}', True),
        ('{"a":"%s","b":12345678901234567000}', False),
        ('{"a":"%s","b":[[[]],{}]}', True),
    ],
)
def test_what_is_canonical_is_read_whichever_way(text: str, quick: bool, padding: str) -> None:
    data = (text % padding).encode()
    value, again = canonical.read(data)
    assert rfc8785.dumps(value) == data
    assert value == canonical.loads(data) == canonical.loads_again(data)
    assert (again is not None) == quick
    assert again is None or again == canonical.rewritten(value)


def test_every_character_is_escaped_as_the_rfc_does() -> None:
    # In blocks: as values, and as keys in their order.
    for start in range(0, 0x10000, 0x400):
        block = [chr(code) for code in range(start, start + 0x400) if not 0xD800 <= code < 0xE000]
        if block:
            data = rfc8785.dumps({"keys": dict.fromkeys(block, 1), "values": block})
            value, again = canonical.read(data)
            assert again == data
            assert value["values"] == block


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e-9, 1e-3) | st.floats(1e14, 1e23))
@example(1e-05)
@example(9.5e-06)
@example(1e-06)
@example(9.5e-07)
@example(-0.000012)
@example(1e-300)
@example(123456789012345.5)
def test_floats_other_than_long_integers_are_read_the_quick_way(value: float) -> None:
    data = rfc8785.dumps({"a": value})
    found, again = canonical.read(data)
    assert found == {"a": value}
    assert again is not None or 2**53 <= abs(value) < 1e21


@pytest.mark.parametrize("padding", ["", LONG])
@pytest.mark.parametrize(
    "text",
    [
        '{"a":"%s","b":1e-07}',
        '{"a":"%s","b":1.5e-6}',
        '{"a":"%s","b":0.00000015}',
        '{"a":"%s","b":1e16}',
        '{"a":"%s","b":1e+20}',
        '{"a":"%s","b":1.0}',
        '{"a":"%s","b":-0}',
        '{"a":"%s","b":NaN}',
        '{"a":"%s","b":Infinity}',
        '{"a":"%s","b":1e400}',
        '{"a":"%s","b":9007199254740993}',
        '{"a":"%s","a":1}',
        '{"b":"%s","a":1}',
        '{"a":"%s","b":"\\u0061"}',
        '{"a":"%s","b":1} ',
    ],
)
def test_what_is_not_canonical_is_refused_whichever_way(text: str, padding: str) -> None:
    with pytest.raises(MalformedError):
        canonical.loads((text % padding).encode())


@given(json_values)
def test_reading_again_gives_the_same(value: object) -> None:
    data = canonical.dumps(value)
    assert canonical.dumps(canonical.loads_again(data)) == data


@pytest.mark.parametrize("depth", [1, 63, 64, 65, 66, 200])
@pytest.mark.parametrize("around", ["[%s]", '[{"a":[]},%s]', '["]]]]\\"[[[",%s,{}]'])
def test_depth_is_counted_exactly(depth: int, around: str) -> None:
    inner = "[" * (depth - 1) + "]" * (depth - 1) if depth > 1 else "1"
    data = (around % inner).encode()
    if depth <= 64:
        canonical.parse(data)
    else:
        with pytest.raises(MalformedError) as caught:
            canonical.parse(data)
        assert caught.value.code == "limit-depth"


@pytest.mark.parametrize("data", [b"[[]," * 80, b"]" * 200 + b"[" * 70, b'["' + b"[" * 200])
def test_brackets_that_do_not_fit_are_a_matter_of_syntax(data: bytes) -> None:
    with pytest.raises(MalformedError) as caught:
        canonical.parse(data)
    assert caught.value.code in ("json-syntax", "limit-depth")
