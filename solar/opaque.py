"""What ``opaque`` operations compute, for the replay: public PyTorch calls by the function's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Attributes = Mapping[str, Any]


def _lu(operands: Sequence[Tensor], attributes: Attributes) -> list[Tensor]:
    packed, pivots = torch.linalg.lu_factor(operands[0])
    exchange, _, _ = torch.lu_unpack(packed, pivots, unpack_data=False)
    # Column i of P has its one in row permutation[i] of the matrix.
    permutation = exchange.argmax(-2)
    sign = torch.where((pivots != torch.arange(1, pivots.shape[-1] + 1)).sum(-1) % 2 == 0, 1.0, -1.0)
    diagonal = packed.diagonal(dim1=-2, dim2=-1)
    signs = torch.cat([sign[..., None], torch.ones_like(diagonal[..., 1:])], -1).to(packed.dtype)
    return [packed, pivots, permutation, diagonal * signs]


def _lu_inverse(operands: Sequence[Tensor], attributes: Attributes) -> list[Tensor]:
    packed, permutation = operands
    one = torch.eye(packed.shape[-1], dtype=packed.dtype).expand(packed.shape)
    turned = one.gather(-2, permutation[..., None].expand(packed.shape))
    half = torch.linalg.solve_triangular(packed, turned, upper=False, unitriangular=True)
    return [torch.linalg.solve_triangular(packed, half, upper=True)]


def _triangular_solve(operands: Sequence[Tensor], attributes: Attributes) -> list[Tensor]:
    options = {"upper": attributes["upper"], "unitriangular": attributes["unit"]}
    return [torch.linalg.solve_triangular(operands[0], operands[1], **options)]


def _qr(operands: Sequence[Tensor], attributes: Attributes) -> list[Tensor]:
    return list(torch.linalg.qr(operands[0], mode="complete" if attributes["complete"] else "reduced"))


def _symmetric(lower: Tensor) -> Tensor:
    """The matrix that a lower triangle stands for, so that gradients reach both halves."""
    return lower + lower.tril(-1).mT


OPAQUE: dict[str, Callable[[Sequence[Tensor], Attributes], list[Tensor]]] = {
    "lu": _lu,
    "lu_inverse": _lu_inverse,
    "triangular_solve": _triangular_solve,
    "cholesky": lambda operands, attributes: [torch.linalg.cholesky(_symmetric(operands[0]))],
    "qr": _qr,
    "qr_triangle": lambda operands, attributes: [torch.linalg.qr(operands[0], mode="r").R],
    "eigh": lambda operands, attributes: list(torch.linalg.eigh(_symmetric(operands[0]))),
    "svd": lambda operands, attributes: list(torch.linalg.svd(operands[0], full_matrices=attributes["full"])),
    "matrix_exp": lambda operands, attributes: [torch.linalg.matrix_exp(operands[0])],
}
