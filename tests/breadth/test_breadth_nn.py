"""Modules of neural networks: each is extracted, converted, attested at its own size and bound, complete.

Where multiply-adds or bytes have a closed form they are compared with it; the forms follow from the sizes in the files.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth_module import check

MODULES = sorted((Path(__file__).parent / "nn").glob("*.py"))

# samples * outputs * inputs of one output; of a transposed convolution, the products that do not fall into the padding.
MULTIPLY_ADDS = {
    "activation_gated": 4 * 24 * 12,
    "block_mixer": 2 * 6 * (2 * 5 * 8) + 2 * 5 * (2 * 6 * 8),
    "block_mlp": 4 * (2 * 12 * 48),
    "block_squeeze_excite": 2 * (2 * 4 * 2),
    "conv1d": 2 * 6 * 11 * (4 * 3),
    "conv1d_causal": 2 * 6 * 11 * (4 * 4),
    "conv2d": 2 * 6 * (5 * 4) * (4 * 9),
    "conv2d_depthwise": 2 * 8 * (9 * 7) * 9,
    "conv2d_dilated": 2 * 6 * (9 * 7) * (4 * 9),
    "conv2d_grouped": 2 * 6 * (7 * 5) * (2 * 9),
    "conv2d_pointwise": 2 * 6 * (9 * 7) * 4,
    "conv3d": 1 * 3 * (4 * 3 * 4) * (4 * 2 * 9),
    "conv_separable": 2 * 4 * (9 * 7) * 9 + 2 * 6 * (9 * 7) * 4,
    "conv_tbc": 9 * 2 * 5 * (3 * 4),
    "conv_transpose1d": 2 * 6 * (7 * 4 - 2) * 4,
    "conv_transpose2d": 2 * 6 * (9 * 3 - 1) * (7 * 3 - 1) * 4,
    "conv_transpose2d_grouped": 2 * 6 * (9 * 7) * 9 * 2,
    "conv_transpose3d": 1 * 2 * (3 * 4 * 2) * 8 * 4,
    "gru": 7 * 2 * 18 * (5 + 6),
    "gru_cell": 3 * 18 * (5 + 6),
    "loss_contrastive": 4 * 4 * 12,
    "loss_linear_cross_entropy": 6 * 5 * 8,
    "lstm": 7 * 2 * 24 * (5 + 6),
    "lstm_bidirectional": 2 * 7 * 2 * 24 * (5 + 6) + 2 * 7 * 2 * 24 * (12 + 6),
    "lstm_cell": 3 * 24 * (5 + 6),
    "rnn_cell": 3 * 6 * (5 + 6),
    "rnn_tanh": 7 * 2 * 6 * (5 + 6) + 7 * 2 * 6 * (6 + 6),
    "weight_norm": 4 * 6 * 12,
    # Forward, gradients to both weights, gradient to the hidden layer.
    "train_linear": 4 * (12 * 8 + 8 * 5) * 2 + 4 * 8 * 5,
}

# Every element of inputs and outputs once, in its own dtype; of a table with unknown indices one row.
LIVE_BYTES = {
    "activation_bf16": 2 * 48 * (1 + 4),
    "activation_relu": 4 * 48 * (1 + 5),
    "adaptive_avg_pool": 4 * (88 + 504 + 224 + 8 * (4 + 21 + 1 + 12) + 2 * 24),
    "batch_norm_eval": 4 * (504 + 504 + 4 * 4),
    "cumulative": 4 * 48 * (1 + 4),
    "dropout_seeded": 4 * 48 * (1 + 2),
    "embedding": 8 * 12 + 4 * 6 + 4 * 12 * 6 + 8 * 12 * 10,
    "embedding_bag": 8 * 12 + 4 * 6 + 4 * 3 * 6,
    "fold_unfold": 4 * (504 + 2 * 36 * 20 + 504),
    "interpolate_nearest": 4 * (88 + 504 + 8 * 22 + 8 * 50 + 8 * 13 * 10),
    "layer_norm": 4 * (144 * 3 + 2 * 12),
    "loss_regression": 4 * (48 * 2 + 4 + 48),
    "lstm": 4 * (70 + 24 * (5 + 6 + 2) + 84 + 2 * 12),
    "max_pool": 4 * (88 + 504 + 192 + 8 * 6 + 8 * 12 + 2 * 12) + (4 + 8) * 8 * 12,
    "pixel_shuffle": 4 * 384 * 4,
    "random_generator": 4 * 48 * 2 + 8 * 4,
    "softmax": 4 * 48 * 4,
    "train_adam": 4 * 48 * (4 + 3),
}


def test_there_are_enough() -> None:
    assert len(MODULES) >= 65
    assert {*MULTIPLY_ADDS, *LIVE_BYTES} <= {path.stem for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module(path: Path) -> None:
    found = check(path).bound
    if path.stem in MULTIPLY_ADDS:
        assert found["macs"] == MULTIPLY_ADDS[path.stem]
    if path.stem in LIVE_BYTES:
        assert found["memory"]["live_bytes"] == LIVE_BYTES[path.stem]
