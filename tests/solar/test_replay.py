"""The replay reads the IR alone: programs written by hand, against closed forms and public functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from solar.einsum import Op, Program, Tensor
from solar.errors import ReplayError
from solar.replay import replay


def form(*terms: tuple[str, int], offset: int = 0) -> dict[str, Any]:
    return {"terms": [list(term) for term in terms], "offset": offset}


def single(
    kind: str,
    function: str,
    inputs: dict[str, torch.Tensor],
    results: list[tuple[tuple[int, ...], str]],
    attributes: dict[str, Any] | None = None,
) -> Program:
    """One op over the inputs in order; outputs are called o0, o1 ..."""
    names = [f"o{i}" for i in range(len(results))]
    tensors = {n: Tensor(tuple(x.shape), str(x.dtype).removeprefix("torch.")) for n, x in inputs.items()}
    tensors |= {name: Tensor(*result) for name, result in zip(names, results, strict=True)}
    op = Op("op", kind, function, tuple(inputs), tuple(names), attributes or {})
    return Program("aten", tensors, tuple((n, n) for n in inputs), tuple((n, n) for n in names), (op,))


def run(program: Program, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return list(replay(program, inputs).values())


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def test_matmul() -> None:
    inputs = {"a": normal(3, 4), "b": normal(4, 5)}
    attributes = {
        "indices": {"m": 3, "n": 5, "k": 4},
        "operands": [[form(("m", 1)), form(("k", 1))], [form(("k", 1)), form(("n", 1))]],
        "output": ["m", "n"],
    }
    (found,) = run(single("einsum", "matmul", inputs, [((3, 5), "float32")], attributes), inputs)
    torch.testing.assert_close(found, inputs["a"] @ inputs["b"])


def test_affine_maps_are_a_convolution_with_zeros_around() -> None:
    inputs = {"x": normal(2, 3, 9), "w": normal(4, 3, 3)}
    attributes = {
        "indices": {"n": 2, "k": 4, "y": 5, "c": 3, "r": 3},
        "operands": [
            [form(("n", 1)), form(("c", 1)), form(("y", 2), ("r", 2), offset=-2)],
            [form(("k", 1)), form(("c", 1)), form(("r", 1))],
        ],
        "output": ["n", "k", "y"],
    }
    (found,) = run(single("einsum", "convolution", inputs, [((2, 4, 5), "float32")], attributes), inputs)
    torch.testing.assert_close(found, F.conv1d(inputs["x"], inputs["w"], stride=2, padding=2, dilation=2))


def test_one_index_in_two_dimensions_is_a_diagonal() -> None:
    inputs = {"x": normal(4, 4)}
    attributes = {"indices": {"i": 4}, "operands": [[form(("i", 1)), form(("i", -1), offset=3)]], "output": []}
    (found,) = run(single("einsum", "matmul", inputs, [((), "float32")], attributes), inputs)
    torch.testing.assert_close(found, inputs["x"].flip(1).diagonal().sum())


def test_an_index_that_no_operand_has_repeats_or_multiplies() -> None:
    inputs = {"x": normal(3)}
    attributes = {"indices": {"i": 3, "j": 2, "s": 5}, "operands": [[form(("i", 1))]], "output": ["j", "i"]}
    (found,) = run(single("einsum", "matmul", inputs, [((2, 3), "float32")], attributes), inputs)
    torch.testing.assert_close(found, 5 * inputs["x"].expand(2, 3))


def test_products_of_narrow_operands_are_formed_in_the_result() -> None:
    inputs = {"a": torch.full((1, 300), 100, dtype=torch.int8), "b": torch.full((300, 1), 100, dtype=torch.int8)}
    attributes = {
        "indices": {"m": 1, "n": 1, "k": 300},
        "operands": [[form(("m", 1)), form(("k", 1))], [form(("k", 1)), form(("n", 1))]],
        "output": ["m", "n"],
    }
    (found,) = run(single("einsum", "matmul", inputs, [((1, 1), "int32")], attributes), inputs)
    assert found.item() == 300 * 100 * 100


def test_fold_adds_columns_where_they_fall() -> None:
    x, w = normal(2, 3, 4, 5), normal(3, 2, 3, 2)
    inputs = {"columns": torch.einsum("nkyx,kcrs->ncyxrs", x, w)}
    attributes = {
        "dims": [2, 3, 4, 5], "keepdim": False, "spatial": 2,
        "stride": [2, 3], "dilation": [1, 2], "padding": [1, 0],
    }  # fmt: skip
    expected = F.conv_transpose2d(x, w, stride=(2, 3), dilation=(1, 2), padding=(1, 0))
    program = single("reduce", "fold", inputs, [(tuple(expected.shape), "float32")], attributes)
    torch.testing.assert_close(run(program, inputs)[0], expected)


@pytest.mark.parametrize(
    ("function", "attributes", "expected"),
    [
        ("sub", {"scalars": {"0": 3}}, lambda x: 3 - x),
        ("sub", {"scalars": {"1": 3}}, lambda x: x - 3),
        ("clamp", {"scalars": {"2": 0.5}}, lambda x: x.clamp(max=0.5)),
        ("pow", {"scalars": {"0": 2.0}}, lambda x: 2.0**x),
        ("maximum", {"scalars": {"1": "-inf"}}, lambda x: x),
        ("tril", {"diagonal": -1}, lambda x: x.tril(-1)),
    ],
)
def test_scalars_stand_where_their_position_says(function, attributes, expected) -> None:
    inputs = {"x": normal(4, 4)}
    program = single("map", function, inputs, [((4, 4), "float32")], attributes)
    torch.testing.assert_close(run(program, inputs)[0], expected(inputs["x"]))


@pytest.mark.parametrize(
    ("function", "shape", "attributes", "expected"),
    [
        ("permute", (6, 4), {"dims": [1, 0]}, lambda x: x.t()),
        ("slice", (4, 2), {"dim": 1, "start": 1, "stop": 5, "step": 3}, lambda x: x[:, 1:5:3]),
        ("select", (4,), {"dim": 1, "index": 2}, lambda x: x[:, 2]),
        ("unsqueeze", (1, 4, 6, 1), {"dims": [0, 3]}, lambda x: x[None, :, :, None]),
        ("diagonal", (4,), {"offset": 1, "dim1": 0, "dim2": 1}, lambda x: x.diagonal(1)),
        ("unfold", (4, 2, 3), {"dim": 1, "size": 3, "step": 2, "dilation": 1}, lambda x: x.unfold(1, 3, 2)[:, :2]),
        (
            "unfold",
            (4, 2, 2),
            {"dim": 1, "size": 2, "step": 1, "dilation": 4},
            lambda x: torch.stack((x[:, :2], x[:, 4:]), 2),
        ),
        ("as_strided", (2, 3), {"stride": [1, 7], "offset": 2}, lambda x: x.as_strided((2, 3), (1, 7), 2)),
        ("expand", (2, 4, 6), {}, lambda x: x.expand(2, 4, 6)),
        ("reshape", (3, 8), {}, lambda x: x.reshape(3, 8)),
    ],
)  # fmt: skip
def test_views(function, shape, attributes, expected) -> None:
    inputs = {"x": normal(4, 6)}
    program = single("view", function, inputs, [(shape, "float32")], attributes)
    assert torch.equal(run(program, inputs)[0], expected(inputs["x"]))


def test_bitcast_keeps_bits() -> None:
    inputs = {"x": torch.tensor([1.0, -2.0])}
    program = single("view", "bitcast", inputs, [((2,), "int32")])
    assert run(program, inputs)[0].tolist() == [0x3F800000, 0xC0000000 - 2**32]


def test_scattered_duplicates_add_up() -> None:
    inputs = {"x": torch.zeros(3), "i": torch.tensor([1, 1, 2]), "v": torch.tensor([1.0, 2.0, 4.0])}
    program = single("index", "index_put", inputs, [((3,), "float32")], {"dims": [0], "accumulate": True})
    assert run(program, inputs)[0].tolist() == [0.0, 3.0, 4.0]


def test_creation() -> None:
    assert run(single("create", "arange", {}, [((3,), "int64")], {"start": 5, "step": -2}), {})[0].tolist() == [5, 3, 1]
    assert (
        run(single("create", "full", {}, [((2,), "float32")], {"value": "inf"}), {})[0].tolist() == [float("inf")] * 2
    )
    assert run(single("create", "constant", {}, [((2, 1), "int64")], {"values": [7, 8]}), {})[0].tolist() == [[7], [8]]


def test_inputs_are_left_alone() -> None:
    inputs = {"x": normal(3)}
    before = inputs["x"].clone()
    result = replay(single("view", "reshape", inputs, [((3,), "float32")]), inputs)
    result["o0"].fill_(0)
    assert torch.equal(inputs["x"], before)


@pytest.mark.parametrize(
    ("program", "inputs", "reason"),
    [
        (single("map", "neg", {"x": torch.zeros(2)}, [((2,), "float32")]), {}, "inputs.x: a tensor is needed"),
        (
            single("map", "neg", {"x": torch.zeros(2)}, [((2,), "float32")]),
            {"x": torch.zeros(3)},
            r"inputs.x: torch.float32 \[3\], the program has float32 \[2\]",
        ),
        (
            single("opaque", "frobnicate", {"x": torch.zeros(2)}, [((2,), "float32")]),
            {"x": torch.zeros(2)},
            "ops.op: opaque frobnicate: no 'frobnicate' known",
        ),
        (
            single("view", "permute", {"x": torch.zeros(2, 3)}, [((2, 3), "float32")], {"dims": [1, 0]}),
            {"x": torch.zeros(2, 3)},
            r"ops.op: permute gives torch.float32 \[3, 2\], the program says float32 \[2, 3\]",
        ),
        (
            single("view", "reshape", {"x": torch.zeros(2, 3)}, [((4,), "float32")]),
            {"x": torch.zeros(2, 3)},
            "ops.op: view reshape",
        ),
        (
            single("opaque", "magic", {"x": torch.zeros(2, 2)}, [((2, 2), "float32")], {"ops": 3}),
            {"x": torch.zeros(2, 2)},
            "ops.op: opaque magic: no 'magic' known to the replay",
        ),
    ],
)
def test_what_does_not_fit_names_the_place(program, inputs, reason: str) -> None:
    with pytest.raises(ReplayError, match=reason):
        replay(program, inputs)
