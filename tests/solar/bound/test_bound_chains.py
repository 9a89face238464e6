"""Linear pieces at their cheapest association, and what ends them."""

from __future__ import annotations

import itertools
import math

import pytest
from bound_programs import Build, machine
from hypothesis import given, settings
from hypothesis import strategies as st

from solar.bound import bound
from solar.einsum import Program
from solar.hardware import Machine

# One engine, one format: operations are twice the multiply-adds.
PLAIN = Machine.from_dict(machine(valu={"float32": 1e12}, bandwidth=1e18))


def multiply_adds(program: Program) -> float:
    found = bound(program, PLAIN)
    return math.fsum(c["ops"] for c in found["compute"] if c["mode"] != "elementwise") / 2


def test_a_bias_and_a_scale_do_not_end_a_chain() -> None:
    b = Build()
    a, m, v = b.input("a", 300, 500), b.input("m", 500, 700), b.input("v", 700, 2)
    bias, scale = b.input("bias", 700), b.input("scale", 300, 1)
    middle = b.map("mul", b.map("add", b.einsum("ij,jk->ik", a, m), bias), scale)
    program = b.program(b.einsum("ij,jk->ik", b.cast(middle, "float32"), v))
    assert multiply_adds(program) == 2 * (500 * 700 + 300 * 500)


@pytest.mark.parametrize("pooled", ["reshape", "window_sum"])
def test_a_mean_over_16_columns_folds_into_the_weights(pooled: str) -> None:
    b = Build()
    x, w = b.input("x", 256, 1024), b.input("w", 1024, 2048)
    made = b.einsum("ij,jk->ik", x, w)
    if pooled == "reshape":
        total = b.sum(b.view("reshape", made, [256, 128, 16]), [2])
    else:
        total = b.op(
            "einsum", "window_sum", [made], [256, 128],
            indices={"i": 256, "p": 128, "t": 16},
            operands=[[{"terms": [["i", 1]], "offset": 0}, {"terms": [["p", 16], ["t", 1]], "offset": 0}]],
            output=["i", "p"],
        )  # fmt: skip
    mean = b.map("div", total, scalars={"1": 16})
    assert multiply_adds(b.program(b.map("erf", mean))) == 256 * 1024 * 2048 / 16


def test_what_else_is_read_of_an_intermediate_is_paid_for() -> None:
    b = Build()
    x, w = b.input("x", 256, 1024), b.input("w", 1024, 2048)
    made = b.einsum("ij,jk->ik", x, w)
    pooled = b.sum(b.view("reshape", made, [256, 128, 16]), [2])
    assert multiply_adds(b.program(b.relu(pooled), b.relu(made))) == 256 * 1024 * 2048


def test_an_intermediate_that_several_contractions_read_is_paid_once_or_avoided() -> None:
    def program(width: int) -> Program:
        b = Build()
        x, w = b.input("x", 256, 64), b.input("w", 64, width)
        u, v = b.input("u", width, 32), b.input("v", width, 32)
        y = b.einsum("ij,jk->ik", x, w)
        return b.program(b.relu(b.einsum("ij,jk->ik", y, u)), b.map("exp", b.einsum("ij,jk->ik", y, v)))

    once = 256 * 64 * 48 + 2 * 256 * 48 * 32
    around = 2 * (64 * 1024 * 32 + 256 * 64 * 32)
    assert multiply_adds(program(48)) == min(once, 2 * (64 * 48 * 32 + 256 * 64 * 32))
    assert multiply_adds(program(1024)) == around


def test_queries_and_keys_of_one_projection_are_not_one_product() -> None:
    b = Build()
    x, w = b.input("x", 512, 256), b.input("w", 256, 192)
    both = b.einsum("ij,jk->ik", x, w)
    q, k, v = (b.slice(both, 1, start, start + 64) for start in (0, 64, 128))
    scores = b.einsum("id,jd->ij", q, k)
    program = b.program(b.einsum("ij,jd->id", b.softmax(scores), v))
    assert multiply_adds(program) == 512 * 256 * 192 + 2 * 512 * 512 * 64


def test_products_that_are_added_merge_where_they_share_a_factor() -> None:
    def program(*, same_left: bool, scale: tuple[int, ...] | None) -> Program:
        b = Build()
        x = b.input("x", 64, 48)
        z = x if same_left else b.input("z", 64, 48)
        left = b.einsum("ij,jk->ik", x, b.input("w", 48, 32))
        right = b.einsum("ij,jk->ik", z, b.input("u", 48, 32))
        if scale is not None:
            left = b.map("mul", left, b.input("s", *scale))
            right = b.map("mul", right, b.input("t", *scale))
        return b.program(b.relu(b.map("add", left, right)))

    one = 64 * 48 * 32
    assert multiply_adds(program(same_left=False, scale=None)) == 2 * one
    assert multiply_adds(program(same_left=True, scale=None)) == one
    # A scale a column folds into its weights; a scale a row does not.
    assert one <= multiply_adds(program(same_left=True, scale=(32,))) <= one + 48 * 32
    assert multiply_adds(program(same_left=True, scale=(64, 1))) == 2 * one


def test_linear_attention_keeps_a_state() -> None:
    b = Build()
    q, k, v = (b.input(name, 1024, 64) for name in "qkv")
    scores = b.map("tril", b.einsum("id,jd->ij", q, k), diagonal=0)
    assert multiply_adds(b.program(b.einsum("ij,je->ie", scores, v))) == 2 * 1024 * 64 * 64


def test_a_norm_of_a_product_goes_through_a_gram_matrix() -> None:
    b = Build()
    x, w = b.input("x", 512, 8), b.input("w", 8, 512)
    y = b.einsum("ij,jk->ik", x, w)
    assert multiply_adds(b.program(b.sum(b.map("mul", y, y), [0, 1]))) <= 2 * 8 * 8 * 512 + 64


def test_a_residual_keeps_its_product() -> None:
    b = Build()
    x, w, u = b.input("x", 256, 64), b.input("w", 64, 64), b.input("u", 64, 1)
    y = b.map("add", x, b.einsum("ij,jk->ik", x, w))
    assert multiply_adds(b.program(b.einsum("ij,jk->ik", y, u))) >= 256 * 64


def test_a_long_chain_is_ordered_too() -> None:
    b = Build()
    y = b.input("x", 64, 64)
    for i in range(12):
        y = b.einsum("ij,jk->ik", y, b.input(f"w{i}", 64, 64))
    assert multiply_adds(b.program(y)) == 12 * 64**3
    assert multiply_adds(b.program(b.einsum("ij,jk->ik", y, b.input("v", 64, 1)))) == 13 * 64**2


def test_a_low_rank_convolution_is_not_formed() -> None:
    # Depthwise then pointwise, nothing between them.
    b = Build()
    x = b.input("x", 1, 16, 34, 34)
    spatial = b.conv(x, b.input("d", 16, 1, 3, 3), groups=16)
    made = b.conv(spatial, b.input("p", 32, 16, 1, 1))
    assert multiply_adds(b.program(made)) == 16 * 32 * 32 * 9 / 4 + 32 * 16 * 32 * 32


def test_a_convolution_of_a_convolution_counts_its_intermediate_once() -> None:
    b = Build()
    x = b.input("x", 1, 16, 34, 34)
    made = b.conv(b.conv(x, b.input("w", 16, 16, 3, 3)), b.input("u", 16, 16, 3, 3))
    assert multiply_adds(b.program(made)) <= (32**2 + 30**2) * 16 * 16 * 9 / 4


# --- against all binary trees --------------------------------------------------------------------------------------


def every_order(terms: list[frozenset[str]], output: frozenset[str], size: dict[str, int]) -> float:
    """Multiply-adds of the best binary tree, by trying them all; steps without a sum are free but for the last."""

    def summed(own: frozenset[str], others: list[frozenset[str]]) -> frozenset[str]:
        return own & output.union(*others)

    terms = [summed(term, terms[:i] + terms[i + 1 :]) for i, term in enumerate(terms)]
    if len(terms) == 1:
        return 0.0
    best = math.inf
    for i, j in itertools.combinations(range(len(terms)), 2):
        rest = [term for k, term in enumerate(terms) if k not in (i, j)]
        joint = terms[i] | terms[j]
        made = summed(joint, rest)
        cost = float(math.prod(size[index] for index in joint))
        if made == joint:
            cost = cost / 2 if not rest else 0.0
        best = min(best, cost + every_order([*rest, made], output, size))
    return best


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[str], str, dict[str, int]]:
    letters = "abcdef"
    size = {letter: draw(st.integers(2, 9)) for letter in letters}
    term = st.lists(st.sampled_from(letters), min_size=1, max_size=3, unique=True).map("".join)
    terms = draw(st.lists(term, min_size=2, max_size=5))
    used = sorted(set("".join(terms)))
    output = draw(st.lists(st.sampled_from(used), max_size=3, unique=True).map("".join))
    return terms, output, size


@settings(max_examples=150, deadline=None, derandomize=True)
@given(networks())
def test_orders_are_as_good_as_the_best_tree(network: tuple[list[str], str, dict[str, int]]) -> None:
    terms, output, size = network
    b = Build()
    names = [b.input(f"x{i}", *(size[letter] for letter in term)) for i, term in enumerate(terms)]
    program = b.program(b.einsum(f"{','.join(terms)}->{output}", *names))
    expected = every_order([frozenset(term) for term in terms], frozenset(output), size)
    assert multiply_adds(program) == pytest.approx(expected)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(networks())
def test_orders_need_no_more_than_the_library_finds(network: tuple[list[str], str, dict[str, int]]) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    terms, output, size = network
    equation = f"{','.join(terms)}->{output}"
    shapes = [tuple(size[letter] for letter in term) for term in terms]
    _, found = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize="optimal")
    b = Build()
    names = [b.input(f"x{i}", *shape) for i, shape in enumerate(shapes)]
    assert multiply_adds(b.program(b.einsum(equation, *names))) <= float(found.opt_cost)


def test_a_stack_of_attention_blocks_is_priced_as_written() -> None:
    b = Build()
    rows, width, heads = 128, 64, 4
    each = width // heads

    def normalised(x: str) -> str:
        centred = b.map("sub", x, b.map("div", b.sum(x, [1], keepdim=True), scalars={"1": width}))
        square = b.map("div", b.sum(b.map("mul", centred, centred), [1], keepdim=True), scalars={"1": width})
        return b.map("mul", centred, b.map("rsqrt", square))

    x = b.input("x", rows, width)
    for i in range(7):
        packed = b.einsum("ij,jk->ik", normalised(x), b.input(f"qkv{i}", width, 3 * width))
        split = b.view("reshape", packed, [rows, 3, heads, each])
        q, k, v = (b.view("select", split, [rows, heads, each], dim=1, index=part) for part in range(3))
        scores = b.map("where", b.causal(rows, rows), b.einsum("ihd,jhd->hij", q, k), scalars={"1": "-inf"})
        mixed = b.view("reshape", b.einsum("hij,jhd->ihd", b.softmax(scores), v), [rows, width])
        x = b.map("add", x, b.einsum("ij,jk->ik", mixed, b.input(f"o{i}", width, width)))
        wide = b.map("erf", b.einsum("ij,jk->ik", normalised(x), b.input(f"up{i}", width, 4 * width)))
        x = b.map("add", x, b.einsum("ij,jk->ik", wide, b.input(f"down{i}", 4 * width, width)))
    program = b.program(x)
    expected = 7 * (rows * width * width * (3 + 1 + 8) + 2 * width * rows * (rows + 1) // 2)
    assert bound(program, PLAIN)["macs"] == expected
    assert expected <= multiply_adds(program) <= expected * 1.02
