"""Modules of tensor algebra: each is extracted, converted, attested at its own size and bound, complete."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from breadth_module import Case, check, converted, load_case

from solar.bound import bound
from solar.errors import ExtractionError
from solar.extract.aten import extract
from solar.graph import Input
from solar.hardware import load

MODULES = sorted((Path(__file__).parent / "tensor").glob("*.py"))


def test_there_are_enough() -> None:
    assert len(MODULES) >= 60


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module(path: Path) -> None:
    check(path)


def triangle(n: int) -> int:
    return n * (n + 1) // 2


# Multiply-adds, and bytes that must move (None: told by another test), by the definition of the operation.
CLOSED_FORMS = {
    # [4, 6] x [6, 5]; every operand once, the result once.
    "mm": (4 * 6 * 5, 4 * (4 * 6 + 6 * 5 + 4 * 5)),
    "bmm": (3 * 4 * 6 * 5, 4 * 3 * (4 * 6 + 6 * 5 + 4 * 5)),
    "baddbmm": (3 * 4 * 6 * 5, 4 * 3 * (4 * 6 + 6 * 5 + 2 * 4 * 5)),
    "addmm": (4 * 6 * 5, 4 * (5 + 4 * 6 + 6 * 5 + 4 * 5)),
    "matmul_broadcast": (2 * 3 * 4 * 6 * 5, 4 * (2 * 4 * 6 + 3 * 6 * 5 + 2 * 3 * 4 * 5)),
    "einsum_ellipsis": (2 * 3 * 4 * 5, 4 * (2 * 3 * 4 + 4 * 5 * 2 + 2 * 3 * 5)),
    "einsum_diagonal": (0, 4 * (3 * 5 + 3 * 5)),
    "tensordot": (5 * 6 * 3 * 4, 4 * (3 * 4 * 5 + 4 * 6 * 3 + 5 * 6)),
    "kron": (0, 4 * (2 * 3 + 4 * 2 + 8 * 6)),
    "outer": (0, 4 * (4 + 7 + 4 * 7)),
    "bilinear": (3 * 6 * 4 * 5, 4 * (3 * 4 + 3 * 5 + 6 * 4 * 5 + 6 + 3 * 6)),
    "cdist": (5 * 4 * 3, 4 * (5 * 3 + 4 * 3 + 5 * 4)),
    "chain_vector": (6 * 5 * 8 + 6 * 8, 4 * (6 * 5 + 5 * 8 + 8 + 6)),
    "slice_of_product": (1 * 6 * 4, 4 * (6 + 6 * 4 + 4)),
    "triangle_of_product": (triangle(5) * 6, 4 * (5 * 6 + 6 * 5 + 5 * 5)),
    "diagonal_times_matrix": (triangle(5) * 4 + 5 * 4, 4 * (5 + triangle(5) + 5 * 4 + 5 * 4)),
    "trace": (5 * 5, 4 * (2 * 5 * 5 + 1)),
    # Batch 2, 3 heads, 8 positions, width 4: both products of every live pair.
    "attention_dense": (2 * 6 * 64 * 4, 4 * 4 * 192),
    "attention_causal": (2 * 6 * triangle(8) * 4, 4 * 4 * 192),
    "attention_window": (2 * 6 * (3 * 8 - 3) * 4, 4 * 4 * 192),
    # Three rows see the prefix of three, the others what lies before them.
    "attention_prefix": (2 * 6 * (3 * 3 + triangle(8) - triangle(3)) * 4, 4 * 4 * 192),
    # A window of three, and the first token for the five rows whose window has left it.
    "attention_sink": (2 * 6 * (4 * 8 - 3 - 2 - 1) * 4, 4 * 4 * 192),
    "attention_alibi": (2 * 6 * triangle(8) * 4, 4 * 4 * 192),
    "attention_softcap": (2 * 6 * triangle(8) * 4, 4 * 4 * 192),
    # Seven pairs of blocks of two.
    "attention_block_sparse": (2 * 6 * 7 * 4 * 4, 4 * 4 * 192),
    # Eight keys for one sample, five for the other; their mask is read as far as it says so.
    "attention_padding": (2 * 3 * 8 * 13 * 4, 4 * 3 * 4 * (2 * 16 + 2 * 13) + 13),
    "attention_cross": (6 * 4 * 9 * (4 + 5), 4 * 6 * (4 * 4 + 9 * 4 + 9 * 5 + 4 * 5)),
    "attention_grouped": (2 * 4 * triangle(6) * 4, 4 * (2 * 4 * 6 * 4 + 2 * 2 * 6 * 4)),
    # Sequences of 3, 5 and 4; of 3, 2 and 3.
    "attention_varlen": (2 * 2 * (triangle(3) + triangle(5) + triangle(4)) * 4, 4 * 4 * 2 * 12 * 4),
    "attention_varlen_mask": (2 * 2 * (9 + 4 + 9) * 4, 4 * 4 * 2 * 8 * 4 + 64),
    # Sixteen tokens of two heads lie on five pages; the sixth page of the table is beyond its length.
    "attention_paged": (2 * 16 * 2 * 8, 4 * (2 * 16 * 2 * 8 + 2 * 3 * 2 * 8) + 8 * 5 + 8 * 3),
    "attention_decode": (2 * 6 * 8 * 4, 4 * 6 * 4 * (2 + 2 * 7 + 2)),
    # Projections in and out, and both products of every pair or of every live pair.
    "multihead_attention": (10 * 8 * 32 + 2 * 4 * 25 * 4, None),
    "multihead_attention_masked": (10 * 8 * 32 + 2 * 4 * triangle(5) * 4, None),
    # Router and three experts for six tokens; then one expert each.
    "moe_dense": (6 * 4 * 3 + 3 * 6 * 4 * 5 * 2, None),
    "moe_gather": (6 * 4 * 3 + 6 * 4 * 5, None),
    "moe_capacity": (6 * 4 * 5, 4 * (6 * 4 + 3 * 4 * 5 + 6 * 5) + 8 * 6),
    "grouped_mm": (12 * 16 * 8, 2 * (12 * 16 + 3 * 16 * 8 + 12 * 8)),
    # Bits and bytes of quantised operands.
    "int8_mm": (32 * 16 * 8, 32 * 16 + 16 * 8 + 4 * (32 + 8 + 32 * 8)),
    "int4_packed": (4 * 16 * 8, 4 * 4 * 16 + 8 * 16 // 2 + 4 * 2 * 8 * 2 + 4 * 4 * 8),
    "mxfp4_both": (4 * 6 * 64, (4 + 6) * (64 // 2 + 64 // 32) + 4 * 4 * 6),
    "mxfp8": (4 * 6 * 64, (4 + 6) * (64 + 64 // 32) + 4 * 4 * 6),
    "nvfp4": (4 * 6 * 32, 2 * 4 * 32 + 6 * (32 // 2 + 32 // 16) + 4 + 2 * 4 * 6),
    "scaled_mm": (16 * 16 * 32, 2 * 16 * 32 + 2 * 4 + 2 * 16 * 16),
    # Movement: what is read of an input, and the result.
    "contiguous_transpose": (0, 2 * 4 * 10 * 12),
    "view_of_sum": (0, 2 * 4 * 8 * 16),
    "movedim": (0, 4 * (3 * 2 * 2 + 3 * 12)),
    "index_select": (0, 4 * 4 * 2 + 8 * 3 + 4 * 4 * 3),
    "index_grid": (0, 4 * 4 + 8 * 2 + 8 * 3 + 4 * 6),
    "triangle_indices": (0, 2 * 4 * 2 * triangle(4)),
    "cache_append": (2 * 6 * 4, 4 * (2 * 5 * 4 + 2 * 2 * 4 + 2 * 6 + 2 * 4)),
    "constant_pad": (0, 4 * (3 * 5 + 3 * 8)),
    "repeat_lengths": (0, 4 * (2 * 4 + 5 * 4)),
    # Linear algebra: triangles are read, factors written.
    "cholesky": (2 * triangle(5) * 7, 4 * 2 * (5 * 7 + 5 * 5)),
    "solve_triangular_input": (0, 4 * 2 * (5 * 4 // 2 + 2 * 5 * 3)),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_multiply_adds_and_bytes(name: str) -> None:
    found = bound(converted(load_case(MODULES[0].parent / f"{name}.py")), load("gfx1200"))
    macs, live = CLOSED_FORMS[name]
    assert found["macs"] == macs
    assert live is None or found["memory"]["live_bytes"] == live


def test_complex_numbers_are_refused() -> None:
    for run in (torch.fft.rfft, lambda x: torch.view_as_complex(x.reshape(2, 4, 2)).abs()):
        with pytest.raises(ExtractionError, match="complex") as caught:
            extract(run, {"x": Input((2, 8), "float32")})
        assert "\n" not in str(caught.value)


def test_contents_that_decide_a_shape_are_refused() -> None:
    for run in (lambda x: x[x > 0], torch.nonzero, torch.unique):
        with pytest.raises(ExtractionError, match=r"contents|not known"):
            extract(run, {"x": Input((2, 8), "float32")})


def test_a_module_that_is_wrong_fails_its_check(tmp_path: Path) -> None:
    """The runner itself: a bound that names what it should not, and inputs that change behind the program's back."""
    text = (MODULES[0].parent / "eigenvalues.py").read_text().replace('UNCOUNTED = ("eigh", "svd")', "UNCOUNTED = ()")
    (tmp_path / "hidden.py").write_text(text)
    with pytest.raises(AssertionError):
        check(tmp_path / "hidden.py")
    case: Case = load_case(MODULES[0].parent / "cache_append.py")
    with pytest.raises(ExtractionError, match="writes its input 'cache'"):
        extract(case.run, {name: Input(tuple(v.shape), "float32") for name, v in case.draw(1).items()})
