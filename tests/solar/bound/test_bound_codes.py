"""What quantised and gathered operands cost: codes of four bits as they are stored, rows that repeat as matrices."""

from __future__ import annotations

import pytest
import torch

from solar.bound import bound
from solar.convert import convert
from solar.extract.aten import extract
from solar.graph import Input
from solar.hardware import load

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
M, N, K = 32, 16, 64


def work(run, **inputs: Input) -> dict[tuple[str, str], float]:
    """Operations by engine and mode on gfx1200."""
    result = bound(convert(extract(run, inputs)), load("gfx1200"))
    return {(entry["engine"], entry["mode"]): entry["ops"] for entry in result["compute"]}


def unpacked(packed: torch.Tensor) -> torch.Tensor:
    return torch.stack([packed & 15, packed >> 4], -1).flatten(-2)


def decoded(packed: torch.Tensor) -> torch.Tensor:
    return torch.tensor(E2M1, device=packed.device)[unpacked(packed).int()]


def by_bits(packed: torch.Tensor) -> torch.Tensor:
    codes = unpacked(packed).to(torch.int32)
    exponent, fraction = (codes >> 1) & 3, (codes & 1).float()
    size = torch.where(exponent == 0, 0.5 * fraction, (1.0 + 0.5 * fraction) * torch.exp2(exponent.float() - 1.0))
    return torch.where(codes >= 8, -size, size)


LEFT, RIGHT = Input((M, K // 2), "uint8"), Input((N, K // 2), "uint8")
PRODUCT = 2 * M * N * K


@pytest.mark.parametrize(
    ("run", "left", "mode"),
    [
        # Zero points leave the sum; the matrix engine takes four bits as they are.
        (lambda a, b: (unpacked(a).float() - 8) @ (unpacked(b).float() - 8).mT, LEFT, "int4"),
        (lambda a, b: a.float() @ unpacked(b).float().mT, Input((M, K), "int8"), "int8"),
        (lambda a, b: a @ unpacked(b).to(torch.bfloat16).mT, Input((M, K), "bfloat16"), "bfloat16"),
        # E2M1 by a table or by its bits: eight-bit floats hold it.
        (lambda a, b: decoded(a) @ decoded(b).mT, LEFT, "float8"),
        (lambda a, b: by_bits(a) @ by_bits(b).mT, LEFT, "float8"),
        (lambda a, b: a.to(torch.float32) @ decoded(b).mT, Input((M, K), "float8_e4m3fn"), "float8"),
        # Rounded to four bits inside of the reference (the right side as above).
        (lambda a, b: a.round().clamp(-8, 7) @ (unpacked(b).float() - 8).mT, Input((M, K), "float32"), "int4"),
    ],
)
def test_codes_are_multiplied_as_they_are_stored(run, left: Input, mode: str) -> None:
    found = work(run, a=left, b=RIGHT)
    assert found["matrix", mode] == PRODUCT
    assert [key for key in found if key[0] == "matrix"] == [("matrix", mode)]


def test_unpacking_for_a_product_is_free_and_else_is_not() -> None:
    assert ("valu", "elementwise") not in work(lambda a, b: decoded(a) @ unpacked(b).float().mT, a=LEFT, b=RIGHT)
    # One mask and one shift for every byte.
    assert work(unpacked, packed=LEFT) == {("valu", "elementwise"): 2 * M * K // 2}
    both = work(lambda a, b: (unpacked(a), unpacked(a).float() @ unpacked(b).float().mT), a=LEFT, b=RIGHT)
    assert both["valu", "elementwise"] == 2 * M * K // 2


def test_weights_gathered_by_token_may_be_grouped() -> None:
    def routed(x: torch.Tensor, weight: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
        return torch.einsum("tk,tkn->tn", x, weight[expert])

    shapes = {"x": Input((M, K), "float16"), "weight": Input((M, K, N), "float16")}
    assert work(routed, **shapes, expert=Input((M,), "int64")) == {("matrix", "float16"): PRODUCT}
    again = tuple(i // 2 for i in range(M))
    assert work(routed, **shapes, expert=Input((M,), "int64", values=again)) == {("matrix", "float16"): PRODUCT}
    # Each matrix once: a vector times a matrix is no matrix product.
    once = tuple(reversed(range(M)))
    assert work(routed, **shapes, expert=Input((M,), "int64", values=once)) == {("valu", "float16"): PRODUCT}


def test_counts_by_segment_are_counted_once_for_all_columns() -> None:
    def mean(x: torch.Tensor, segment: torch.Tensor) -> torch.Tensor:
        base = torch.zeros(3, N, device=x.device)
        return base.scatter_reduce(0, segment[:, None].expand(M, N), x, "mean", include_self=False)

    # Every element is added, every row counted; a division for each result.
    expected = M * N + M + 3 * N
    assert work(mean, x=Input((M, N), "float32"), segment=Input((M,), "int64")) == {("valu", "elementwise"): expected}


def test_a_permutation_reads_every_row_and_a_choice_as_many_as_it_may() -> None:
    def live(run) -> int:
        shapes = {"x": Input((M,), "float32"), "y": Input((M, N), "float32"), "i": Input((M,), "int64")}
        result = bound(convert(extract(run, shapes)), load("gfx1200"))
        return {tensor["name"]: tensor["live_bytes"] for tensor in result["tensors"]}["y"]

    assert live(lambda x, y, i: y[x.argsort()]) == 4 * M * N
    assert live(lambda x, y, i: y[x.argsort()[:5]]) == 4 * 5 * N
    assert live(lambda x, y, i: y[x.topk(5).indices]) == 4 * 5 * N
    assert live(lambda x, y, i: y.gather(0, x.argsort()[:, None].expand(M, N))) == 4 * M * N
    assert live(lambda x, y, i: y.gather(0, y.argsort(0))[:5]) == 4 * M * N  # the sort reads all of it
    # Unknown indices may all be one; of an order along another dimension, too.
    assert live(lambda x, y, i: y[i]) == 4 * N
    assert live(lambda x, y, i: y.gather(1, x.argsort()[:, None].expand(M, N) % N)) == 4 * M
