"""Operations: contractions in the cheapest admissible format, products that are needed, elementwise work."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from bound_programs import Build, machine

from solar.bound import bound
from solar.einsum import Program, Tensor
from solar.hardware import Machine, load

GFX1200 = load("gfx1200")
REJECTED = ("float16", "bfloat16")


def contraction(program: Program, rejected: tuple[str, ...] = (), target: Machine = GFX1200) -> list[tuple[str, float]]:
    """Mode and operations of everything but elementwise work."""
    found = bound(program, target, rejected_formats=rejected)
    return [(c["mode"], c["ops"]) for c in found["compute"] if c["mode"] != "elementwise"]


def product(m: int, k: int, n: int, dtype: str = "float32") -> tuple[Build, str, str]:
    b = Build()
    return b, b.input("a", m, k, dtype=dtype), b.input("b", k, n, dtype=dtype)


def macs(program: Program) -> tuple[int, int]:
    found = bound(program, GFX1200)
    return found["macs"], found["dense_macs"]


# --- formats -------------------------------------------------------------------------------------------------------


def test_a_coarser_float_is_admissible_until_it_is_rejected() -> None:
    b, x, w = product(1024, 1024, 1024)
    program = b.program(b.einsum("ij,jk->ik", x, w))
    assert contraction(program) == [("float16", 2 * 1024**3)]
    assert contraction(program, ("float16",)) == [("bfloat16", 2 * 1024**3)]


def test_eight_bit_operands_need_to_be_of_eight_bits() -> None:
    b, x, w = product(256, 256, 256, "int8")
    found = b.einsum("ij,jk->ik", b.cast(x, "int32"), b.cast(w, "int32"))
    assert contraction(b.program(found)) == [("int8", 2 * 256**3)]
    b, x, w = product(256, 256, 256, "float8_e4m3fn")
    found = b.einsum("ij,jk->ik", b.cast(x, "float32"), b.cast(w, "float32"))
    assert contraction(b.program(found), REJECTED) == [("float8", 2 * 256**3)]
    b, x, w = product(256, 256, 256, "bfloat16")
    assert contraction(b.program(b.einsum("ij,jk->ik", x, w))) == [("bfloat16", 2 * 256**3)]


def test_a_scale_that_repeats_leaves_the_product() -> None:
    b, x, w = product(256, 256, 256, "int8")
    scale = b.input("scale", 256, 1)
    scaled = b.map("mul", b.cast(x, "float32"), scale)
    assert contraction(b.program(b.einsum("ij,jk->ik", scaled, b.cast(w, "float32"))), REJECTED) == [
        ("int8", 2 * 256**3)
    ]


def test_one_operand_of_16_bits_needs_the_other_split_only() -> None:
    b = Build()
    x, w = b.input("x", 256, 256), b.input("w", 256, 256, dtype="float16")
    made = b.einsum("ij,jk->ik", x, b.cast(w, "float32"))
    assert contraction(b.program(made), REJECTED) == [("float16*2", 2 * 2 * 256**3)]


def test_terms_are_kept_without_a_clock_as_well() -> None:
    b, x, w = product(512, 512, 512, "float16")
    found = bound(b.program(b.einsum("ij,jk->ik", x, w)), GFX1200)
    assert found["compute"][0]["cycles"] == 2 * 512**3 / 32768
    assert found["memory"]["cycles"] == 3 * 512 * 512 * 2 / 128


# --- products that are needed --------------------------------------------------------------------------------------


def test_a_diagonal_matrix_has_few_products() -> None:
    b = Build()
    v, w = b.input("v", 512), b.input("w", 512, 300)
    zeros = b.op("create", "full", [], [512, 512], "float32", value=0.0)
    matrix = b.op("copy", "diagonal_scatter", [zeros, v], [512, 512], offset=0, dim1=0, dim2=1)
    program = b.program(b.einsum("ij,jk->ik", matrix, w))
    assert macs(program) == (512 * 300, 512 * 512 * 300)
    assert contraction(program)[0][1] <= 2 * 512 * 300


def test_a_padded_operand_has_no_products_with_zeros() -> None:
    b = Build()
    x, w = b.input("x", 32, 64), b.input("w", 128, 16)
    padded = b.op("copy", "pad", [x], [32, 128], before=[0, 10], after=[0, 54], value=0)
    assert macs(b.program(b.einsum("ij,jk->ik", padded, w)))[0] == 32 * 64 * 16


def test_the_identity_multiplies_nothing() -> None:
    b = Build()
    w = b.input("w", 64, 16)
    eye = b.op("create", "eye", [], [64, 64], "float32")
    assert contraction(b.program(b.einsum("ij,jk->ik", eye, w))) == []


def test_a_one_hot_matrix_selects_a_row() -> None:
    b = Build()
    label, w = b.input("label", 32, dtype="int64"), b.input("w", 100, 64)
    classes = b.op("create", "arange", [], [100], "int64", start=0, step=1)
    hit = b.map("eq", b.view("unsqueeze", label, [32, 1], dims=[1]), classes, dtype="bool")
    program = b.program(b.einsum("ij,jk->ik", b.cast(hit, "float32"), w))
    assert contraction(program) == []
    assert bound(program, GFX1200)["memory"]["live_read_bytes"] == 32 * 8 + 64 * 4


def attention(length: int, *, causal: bool, window: int | None = None) -> Program:
    b = Build()
    shape = (1, 12, length, 64)
    q, k, v = (b.input(name, *shape) for name in "qkv")
    scores = b.map("mul", b.einsum("bhid,bhjd->bhij", q, k), scalars={"1": 0.125})
    if causal:
        hidden = b.causal(length, length)
        if window is not None:
            i = b.op("create", "arange", [], [length], "int64", start=0, step=1)
            j = b.view("unsqueeze", i, [length, 1], dims=[1])
            far = b.map("ge", b.map("sub", j, i), dtype="bool", scalars={"1": window})
            hidden = b.map("logical_or", hidden, far, dtype="bool")
        scores = b.map("where", hidden, scores, dtype="float32", scalars={"1": "-inf"})
    return b.program(b.einsum("bhij,bhjd->bhid", b.softmax(scores), v))


def test_windowed_attention_counts_live_pairs_exactly() -> None:
    found = bound(attention(64, causal=True, window=16), GFX1200)
    assert found["flops"] == 2 * 2 * 12 * 64 * sum(min(16, i + 1) for i in range(64))


def test_the_same_product_twice_is_one_product() -> None:
    b, x, w = product(64, 64, 64)
    twice = b.map("add", b.relu(b.einsum("ij,jk->ik", x, w)), b.map("exp", b.einsum("ij,jk->ik", x, w)))
    assert macs(b.program(twice))[0] == 64**3


def test_repetition_along_a_batch_is_computed_once() -> None:
    b = Build()
    x, w = b.input("x", 1, 64, 64), b.input("w", 1, 64, 64)
    wide = [b.view("expand", name, [32, 64, 64]) for name in (x, w)]
    assert contraction(b.program(b.einsum("bij,bjk->bik", *wide)))[0][1] == 2 * 64**3
    b = Build()
    y = b.relu(b.view("expand", b.input("y", 1, 64), [32, 64]))
    found = bound(b.program(y), GFX1200)
    assert [c["ops"] for c in found["compute"]] == [64]


# --- convolutions --------------------------------------------------------------------------------------------------


def test_padding_counts_in_the_quoted_figure_and_costs_nothing() -> None:
    b = Build()
    x, w = b.input("x", 1, 3, 32, 32), b.input("w", 16, 3, 3, 3)
    program = b.program(b.conv(x, w, padding=1))
    assert macs(program)[0] == 442_368
    inside = (3 * 32 - 2) ** 2 * 3 * 16
    assert contraction(program)[0][1] == 2 * inside / 4


def test_a_transposed_convolution_of_stride_1_is_a_convolution() -> None:
    b = Build()
    x, w = b.input("x", 1, 16, 32, 32), b.input("w", 16, 8, 3, 3)
    columns = b.op(
        "einsum", "columns", [x, w], [1, 8, 32, 32, 3, 3],
        indices={"n": 1, "c": 16, "k": 8, "y": 32, "z": 32, "r": 3, "s": 3},
        operands=[[{"terms": [[i, 1]], "offset": 0} for i in letters] for letters in ("ncyz", "ckrs")],
        output=list("nkyzrs"),
    )  # fmt: skip
    made = b.op(
        "reduce", "fold", [columns], [1, 8, 34, 34],
        dims=[2, 3, 4, 5], keepdim=False, spatial=2, stride=[1, 1], dilation=[1, 1], padding=[0, 0],
    )  # fmt: skip
    program = b.program(made)
    assert macs(program)[0] == 16 * 8 * 32 * 32 * 9
    assert contraction(program)[0][1] == 2 * 16 * 8 * 32 * 32 * 9 / 4


# --- elementwise work ----------------------------------------------------------------------------------------------


def elementwise(program: Program) -> float:
    return math.fsum(c["ops"] for c in bound(program, GFX1200)["compute"] if c["mode"] == "elementwise")


def test_a_map_costs_one_operation_an_element() -> None:
    b = Build()
    x = b.input("x", 100, 10)
    assert elementwise(b.program(b.map("exp", x))) == 1000
    assert elementwise(b.program(b.slice(b.map("exp", x), 0, 0, 3))) == 30


def test_casts_copies_views_and_signs_ride_along() -> None:
    b = Build()
    x = b.input("x", 100, 10)
    assert elementwise(b.program(b.map("neg", b.cast(b.op("copy", "clone", [x], [100, 10]), "float16")))) == 0


def test_reductions_scans_and_sorts() -> None:
    b = Build()
    x = b.input("x", 100, 10)
    assert elementwise(b.program(b.sum(x, [1]))) == 900
    assert elementwise(b.program(b.op("scan", "cumsum", [x], [100, 10], dim=1))) == 1000
    ordered = b.op("sort", "sort", [x], [100, 10], dim=1, descending=False, stable=False)
    b.tensors["places"] = Tensor((100, 10), "int64")
    b.ops[-1] = replace(b.ops[-1], outputs=(ordered, "places"))
    assert elementwise(b.program(ordered)) == 1000


def test_pairwise_differences_are_counted_in_full() -> None:
    b = Build()
    x, y = b.input("x", 256, 1, 64), b.input("y", 1, 256, 64)
    distance = b.sum(b.map("abs", b.map("sub", x, y)), [2])
    assert elementwise(b.program(distance)) == 256 * 256 * 64 + 256 * 256 * 63


def test_a_sum_of_sums_does_not_form_the_pairs() -> None:
    b = Build()
    x, y = b.input("x", 256, 1), b.input("y", 1, 256)
    assert elementwise(b.program(b.sum(b.map("add", x, y), [0, 1]))) <= 4 * 256


def test_what_depends_on_no_input_costs_nothing() -> None:
    b = Build()
    x = b.input("x", 64)
    positions = b.op("create", "arange", [], [64], "float32", start=0, step=1)
    assert elementwise(b.program(b.map("add", x, b.map("cos", positions)))) == 64


def test_engines_overlap_and_modes_of_one_engine_add_up() -> None:
    b, x, w = product(256, 256, 256, "float16")
    made = b.map("exp", b.einsum("ij,jk->ik", x, w))
    target = Machine.from_dict(machine({"float16": 1e12}, {"float32": 1e9}, bandwidth=1e15))
    found = bound(b.program(made), target)
    assert found["binds"] == "valu"
    assert found["t_sol_s"] == pytest.approx(256 * 256 / 1e9)
    assert {c["engine"]: c["seconds"] for c in found["compute"]}["matrix"] == pytest.approx(2 * 256**3 / 1e12)


def test_an_opaque_operation_leaves_the_bound_partial() -> None:
    b = Build()
    x = b.input("x", 64, 64)
    made = b.op("opaque", "eigenvalues", [x], [64], ops=64**3)
    found = bound(b.program(b.relu(made)), GFX1200)
    assert (found["coverage"], found["uncounted"]) == ("partial", ["eigenvalues"])
    assert found["t_sol_s"] > 0
    assert bound(b.program(b.relu(x)), GFX1200)["coverage"] == "complete"


def test_every_live_operation_has_a_term() -> None:
    b, x, w = product(32, 32, 32)
    b.map("exp", x)
    made = b.relu(b.einsum("ij,jk->ik", x, w))
    found = bound(b.program(made), GFX1200)
    assert [term["kind"] for term in found["terms"]] == ["einsum", "map"]
    assert math.fsum(t["work"] for t in found["terms"]) == math.fsum(c["ops"] for c in found["compute"])
