import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench.errors import InputError
from solbench.model.expression import MAX_MAGNITUDE, evaluate, evaluate_int, names_in

AXES = {"M": 7, "K": 64, "N": 100}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("M", 7),
        ("2 * M + 1", 15),
        ("K // 3", 21),
        ("N % M", 2),
        ("-K", -64),
        ("M ** 2", 49),
        ("1/sqrt(K)", 0.125),
        ("1e-6/N", 1e-8),
        ("min(M, K) + max(M, K)", 71),
        (5, 5),
        (0.5, 0.5),
    ],
)
def test_value(text: str | int | float, value: float) -> None:
    assert evaluate(text, AXES, "here") == value


@pytest.mark.parametrize(
    "text",
    [
        "Q",
        "M.real",
        "M[0]",
        "(lambda: 1)()",
        "__import__('os')",
        "'a'",
        "True",
        "1j",
        "M if K else N",
        "[M]",
        "1 // 0",
        "1 / 0",
        "sqrt(-1)",
        "sqrt(1, 2)",
        "sqrt(x=1)",
        "min()",
        "max(1)",
        "2 ** -1",
        "2 ** 65",
        "2 ** 0.5",
        "1e999",
        "10 ** 19",
        "((((9**64)**64)**64)**64)**64",
        "9**64*9**64*9**64*9**64*9**64*9**64",
        "1 +",
        "",
        "\0",
        "(" * 150,
        "1" * 201,
        None,
        True,
    ],
)
def test_refused(text: object) -> None:
    with pytest.raises(InputError, match=r"^file: field"):
        evaluate(text, AXES, "file: field")  # type: ignore[arg-type]


def test_integer_wanted() -> None:
    assert evaluate_int("K / 2", AXES, "here") == 32
    with pytest.raises(InputError, match=r"'K / 3' is 21.3.*not an integer"):
        evaluate_int("K / 3", AXES, "here")


def test_names() -> None:
    assert names_in("1/sqrt(9*C) + max(H, W)", "here") == {"C", "H", "W"}
    assert names_in(3, "here") == frozenset()
    with pytest.raises(InputError):
        names_in("1 +", "here")


_integer_text = st.recursive(
    st.integers(0, 50).map(str) | st.sampled_from(sorted(AXES)),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=6,
)


@given(_integer_text)
def test_agrees_with_python(text: str) -> None:
    expected = eval(text, {"__builtins__": {}}, dict(AXES))  # noqa: S307 (a text made above, of digits and operators)
    if abs(expected) <= MAX_MAGNITUDE and len(text) <= 200:
        assert evaluate(text, AXES, "here") == expected


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_an_input_error(text: str) -> None:
    try:
        value = evaluate(text, AXES, "here")
    except InputError:
        return
    assert math.isfinite(value)
