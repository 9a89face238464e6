"""Linear algebra: operation counts against closed forms, and what must not be charged."""

from __future__ import annotations

import pytest
import torch

from solar.bound import bound
from solar.convert import convert
from solar.einsum import Program
from solar.extract.aten import extract
from solar.graph import Input
from solar.hardware import load

L = torch.linalg
N, M, K = 24, 5, 3


def converted(run, **shapes: tuple[int, ...]) -> Program:
    return convert(extract(run, {name: Input(shape, "float32") for name, shape in shapes.items()}))


def declared(run, **shapes: tuple[int, ...]) -> float:
    """Operations that the bound charges for what is counted and not decomposed."""
    result = bound(converted(run, **shapes), load("gfx1200"))
    assert result["coverage"] == "complete"
    return sum(term["work"] for term in result["terms"] if term["mode"] == "declared")


SQUARE = {"a": (N, N)}
SYSTEM = {"a": (N, N), "b": (N, M)}
FACTOR = (N - 1) * N * (N + 1) // 3  # sum of j (j + 1), j < N: a multiply-add each way of a symmetric update
TRIANGLE = N * (N - 1) * M  # two triangles' worth of multiply-adds are N (N - 1) a column


@pytest.mark.parametrize(
    ("run", "shapes", "expected"),
    [
        (lambda a: L.cholesky(a), SQUARE, FACTOR),
        (lambda a: L.cholesky(a), {"a": (K, N, N)}, K * FACTOR),
        (lambda a: L.cholesky(a).diagonal().log().sum(), SQUARE, FACTOR),
        (lambda a, b: L.solve_triangular(a, b, upper=False), SYSTEM, TRIANGLE),
        (lambda a, b: L.solve(a, b), SYSTEM, FACTOR + 2 * TRIANGLE),
        (lambda a, b: torch.cholesky_solve(b, L.cholesky(a)), SYSTEM, FACTOR + 2 * TRIANGLE),
        (lambda a: L.det(a), SQUARE, FACTOR),
        (lambda a: L.inv(a), SQUARE, FACTOR + 2 * N * (N - 1) * (N - 2) // 3),
        (lambda a: L.qr(a, mode="r").R, {"a": (2 * N, N)}, 2 * N**2 * (N - 1) + N * (N - 1) * (N - 2) // 3),
        (lambda a: L.qr(a), {"a": (2 * N, N)}, 4 * N**2 * (N - 1) + N * (N - 1) * (N - 2) // 3),
        # One factorisation serves two readers.
        (lambda a, b: (L.solve(a, b), L.det(a)), SYSTEM, FACTOR + 2 * TRIANGLE),
    ],
)
def test_counts(run, shapes, expected: int) -> None:
    assert declared(run, **shapes) == expected


@pytest.mark.parametrize(
    ("run", "shapes", "expected"),
    [
        # The same matrix for the whole batch is factorised once.
        (lambda a: L.cholesky(a.expand(K, N, N)), SQUARE, FACTOR),
        # The inverse of a matrix that multiplies a vector need not be formed.
        (lambda a, v: L.inv(a) @ v, {"a": (N, N), "v": (N,)}, FACTOR),
        # A solution that a product reads may follow it: (x A^-1) b.
        (lambda a, b, x: x @ L.solve_triangular(a, b, upper=False), {**SYSTEM, "x": (1, N)}, 0),
        # A right side that is a product of little rank, or one column repeated, may be solved for that little.
        (lambda a, p, q: L.solve(a, p @ q), {"a": (N, N), "p": (N, 1), "q": (1, M)}, FACTOR),
        (lambda a, p, q: L.solve(a, p * q), {"a": (N, N), "p": (N, 1), "q": (1, M)}, FACTOR),
        (lambda a, p: L.solve(a, p.expand(N, M)), {"a": (N, N), "p": (N, 1)}, FACTOR),
        # Zeros by structure: nothing to eliminate.
        (lambda a, b: L.solve(a.tril(), b), SYSTEM, 0),
        (lambda d, b: L.solve(torch.diag(d), b), {"d": (N,), "b": (N, M)}, 0),
        # One matrix of a batch.
        (lambda a: L.det(a)[-1:], {"a": (K, N, N)}, 0),
        # Only the first rows of a solution.
        (lambda a, b: L.solve_triangular(a, b, upper=False)[:2], SYSTEM, 0),
        # A sum of two solutions is the solution of a sum.
        (lambda a, b, c: L.solve_triangular(a, b, upper=False) + L.solve_triangular(a, c, upper=False),
         {**SYSTEM, "c": (N, M)}, 0),
        # Of little rank: updates of the diagonal's factor.
        (lambda x: L.cholesky(x @ x.mT + torch.eye(N, device=x.device)), {"x": (N, K)}, 0),
    ],
)  # fmt: skip
def test_what_a_kernel_may_save_is_not_charged(run, shapes, expected: int) -> None:
    assert declared(run, **shapes) == expected


def test_only_the_triangle_is_read() -> None:
    result = bound(converted(lambda a: L.cholesky(a), a=(N, N)), load("gfx1200"))
    assert result["memory"]["live_bytes"] == 4 * (N * (N + 1) // 2 + N * N)
    unit = converted(lambda a, b: L.solve_triangular(a, b, upper=True, unitriangular=True), **SYSTEM)
    assert bound(unit, load("gfx1200"))["memory"]["live_bytes"] == 4 * (N * (N - 1) // 2 + 2 * N * M)


def test_iterations_are_named() -> None:
    result = bound(converted(lambda a: L.eigvalsh(a), a=(N, N)), load("gfx1200"))
    assert (result["coverage"], result["uncounted"]) == ("partial", ["eigh"])
