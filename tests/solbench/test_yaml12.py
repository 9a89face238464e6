"""Strict YAML: plain data passes, what two readers read differently is refused with file and line."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from solbench.errors import InputError
from solbench.yaml12 import load_yaml, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: 1.0e-5", {"a": 1e-5}),
        ("a: 'yes'", {"a": "yes"}),
        ("N: [1, 2.5, x, true, null]", {"N": [1, 2.5, "x", True, None]}),
        ("a: '2020-01-01'", {"a": "2020-01-01"}),
        ("a: -0.5", {"a": -0.5}),
        ("", None),
    ],
)
def test_plain_data(text, value):
    assert parse_yaml(text.encode(), "f.yaml") == value


@pytest.mark.parametrize(
    "text",
    [
        "a: 1e-5", "a: 1.0e5", "a: yes", "a: Off", "a: 010", "a: 2020-01-01", "a: 12:30", "a: 1_000", "a: &x 1",
        "a: &x [1]\nb: *x", "a: !!python/object:os.system 1", "a: !!str 1", "a: 1\na: 2", "1: 2", "a: [1, 2",
        "a: {b: 1, b: 2}", "a: \x07",
    ],
)  # fmt: skip
def test_refused_with_a_line(text):
    with pytest.raises(InputError, match=r"^f\.yaml(:\d+)?: .+"):
        parse_yaml(text.encode(), "f.yaml")


def test_not_utf8_and_missing_file(tmp_path):
    with pytest.raises(InputError, match="not UTF-8"):
        parse_yaml(b"a: \xff", "f.yaml")
    with pytest.raises(InputError, match="no such file"):
        load_yaml(tmp_path / "absent.yaml")


def test_billion_laughs_is_refused_before_it_expands():
    text = "a: &a [x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)},*{chr(97 + i)}]\n" for i in range(20)
    )
    with pytest.raises(InputError, match="anchors"):
        parse_yaml(text.encode(), "f.yaml")


letters = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | letters,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcXYZ", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain)
def test_what_a_safe_writer_quotes_comes_back(value):
    written = yaml.safe_dump(value, allow_unicode=True, default_style='"' if isinstance(value, str) else None)
    try:
        assert parse_yaml(written.encode(), "f.yaml") == value
    except InputError as error:
        assert "reader" in str(error) or "plain data" in str(error)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_an_input_error(data):
    try:
        parse_yaml(data, "f.yaml")
    except InputError as error:
        assert str(error).startswith("f.yaml")
