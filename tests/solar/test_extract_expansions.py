"""Losses that stage 1 writes out: what they need to know, and that they do no more work than their lengths ask for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from solar.bound import bound
from solar.convert import convert
from solar.errors import ExtractionError
from solar.extract.aten import extract
from solar.graph import Input
from solar.hardware import load


def ctc(x: Any, targets: Any, lengths: Any, target_lengths: Any) -> Any:
    return F.ctc_loss(x, targets, lengths, target_lengths)


def ctc_inputs(lengths: tuple[int, ...] | None, target_lengths: tuple[int, ...]) -> dict[str, Input]:
    return {
        "x": Input((9, 2, 5), "float32"),
        "targets": Input((2, 3), "int64", values=(1, 2, 2, 3, 1, 4)),
        "lengths": Input((2,), "int64", values=lengths),
        "target_lengths": Input((2,), "int64", values=target_lengths),
    }


def work(lengths: tuple[int, ...], target_lengths: tuple[int, ...]) -> float:
    program = convert(extract(ctc, ctc_inputs(lengths, target_lengths)))
    return sum(entry["ops"] for entry in bound(program, load("gfx1200"))["compute"])


def test_lengths_have_to_be_known() -> None:
    extract(ctc, ctc_inputs((9, 9), (3, 3)))
    with pytest.raises(ExtractionError, match=r"tolist: needs the contents of a int64 tensor") as error:
        extract(ctc, ctc_inputs(None, (3, 3)))
    assert "\n" not in str(error.value)


def test_shorter_inputs_and_targets_cost_less() -> None:
    assert work((5, 9), (3, 3)) < work((9, 9), (3, 3))
    assert work((9, 9), (1, 1)) < work((9, 9), (3, 3))


def test_labels_have_to_be_known() -> None:
    scores = {"x": Input((2, 4), "float32")}
    labels = (1, 3, -1, 0, 2, -1, 0, 0)
    known = {**scores, "labels": Input((2, 4), "int64", values=labels)}
    program = convert(extract(F.multilabel_margin_loss, known))
    # Pairs of a label and a class that is none: 2 * 2 + 1 * 3, each a difference, a limit, a sum.
    limits = [op.outputs[0] for op in program.ops if op.function == "relu"]
    assert sum(program.tensors[name].elements for name in limits) == 7
    with pytest.raises(ExtractionError, match="tolist"):
        extract(F.multilabel_margin_loss, {**scores, "labels": Input((2, 4), "int64")})


@pytest.mark.parametrize(
    "variance", [2.0, torch.full((3, 1), 2.0), torch.full((3,), 2.0)], ids=["number", "one", "row"]
)
def test_gaussian_variances_of_any_shape(variance: Any) -> None:
    from solar.extract.expansions import gaussian_nll_loss

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    torch.testing.assert_close(gaussian_nll_loss(x, y, variance), F.gaussian_nll_loss(x, y, variance))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin(reduction: str, p: int) -> None:
    from solar.extract.expansions import multi_margin_loss

    x, target, weight = torch.randn(5, 4), torch.tensor([0, 3, 2, 1, 3]), torch.rand(4)
    options: dict[str, Any] = {"p": p, "margin": 0.7, "weight": weight, "reduction": reduction}
    torch.testing.assert_close(multi_margin_loss(x, target, **options), F.multi_margin_loss(x, target, **options))
    torch.testing.assert_close(multi_margin_loss(x[0], target[0]), F.multi_margin_loss(x[0], target[0]))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_ctc_of_long_samples_against_pytorch(reduction: str) -> None:
    from solar.extract.expansions import ctc_loss

    x = torch.randn(40, 3, 6, generator=torch.Generator().manual_seed(1)).log_softmax(2)
    targets = torch.randint(1, 6, (3, 12), generator=torch.Generator().manual_seed(2))
    lengths, counts = (40, 33, 12), (12, 9, 12)
    options: dict[str, Any] = {"reduction": reduction}
    expected = F.ctc_loss(x, targets, lengths, counts, **options)
    torch.testing.assert_close(ctc_loss(x, targets, lengths, counts, **options), expected, rtol=1e-5, atol=1e-4)


def test_bags_refuse_what_writes_or_counts() -> None:
    inputs = {"index": Input((3, 4), "int64"), "table": Input((10, 6), "float32")}
    extract(lambda index, table: F.embedding_bag(index, table), inputs)
    with pytest.raises(ExtractionError, match="max_norm, scale_grad_by_freq and sparse are not supported"):
        extract(lambda index, table: F.embedding_bag(index, table, max_norm=1.0), inputs)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
def test_bags_with_padding(mode: str, last: bool) -> None:
    from solar.extract.expansions import embedding_bag

    table, index = torch.randn(10, 6), torch.tensor([1, 2, 9, 9, 0, 3, 2])
    offsets = torch.tensor([0, 2, 4, 4, 7] if last else [0, 2, 4, 4])
    options: dict[str, Any] = {"mode": mode, "padding_idx": 9}
    expected = F.embedding_bag(index, table, offsets, include_last_offset=last, **options)
    torch.testing.assert_close(embedding_bag(index, table, offsets, include_last_offset=last, **options), expected)
    rows = index[:6].reshape(2, 3)
    torch.testing.assert_close(embedding_bag(rows, table, **options), F.embedding_bag(rows, table, **options))


@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grids(border: str, align: bool) -> None:
    from solar.extract.grids import grid_sample

    planes, grid = torch.randn(2, 3, 5, 4), torch.rand(2, 6, 7, 2) * 6 - 3
    volumes, places = torch.randn(2, 3, 5, 4, 3), torch.rand(2, 3, 4, 5, 3) * 6 - 3
    for mode in ("bilinear", "nearest", "bicubic"):
        options: dict[str, Any] = {"mode": mode, "padding_mode": border, "align_corners": align}
        torch.testing.assert_close(
            grid_sample(planes, grid, **options), F.grid_sample(planes, grid, **options), rtol=1e-4, atol=1e-5
        )
        if mode != "bicubic":
            torch.testing.assert_close(
                grid_sample(volumes, places, **options), F.grid_sample(volumes, places, **options), rtol=1e-4, atol=1e-5
            )
