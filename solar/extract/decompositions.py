"""Operators that stage 1 lets PyTorch decompose, by name: fixed here, so that few kinds remain on every machine.

Mostly gradients and rare composites. What conversion has an own rule for (softmax, norms, losses, pooling, activations)
stays whole, so that the operator graph reads like the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

_GRADIENTS = """
    native_layer_norm_backward native_group_norm_backward native_batch_norm_backward _fused_rms_norm_backward
    gelu_backward silu_backward sigmoid_backward tanh_backward threshold_backward hardtanh_backward leaky_relu_backward
    elu_backward softplus_backward mish_backward log_sigmoid_backward hardswish_backward hardsigmoid_backward
    glu_backward _prelu_kernel_backward _softmax_backward_data _log_softmax_backward_data nll_loss_backward
    nll_loss2d_backward mse_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward
    slice_backward select_backward diagonal_backward unfold_backward
    max_pool2d_with_indices_backward soft_margin_loss_backward logit_backward
    reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
"""
_COMPOSITES = """
    mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss
    nll_loss2d_forward log_sigmoid_forward logit
    nansum nan_to_num aminmax trace isin addr addmv dist _euclidean_dist
    im2col col2im pixel_shuffle pixel_unshuffle channel_shuffle
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
    replication_pad2d replication_pad3d linspace logspace renorm rot90
    special_entr xlogy threshold softshrink hardshrink affine_grid_generator diag_embed block_diag
    deg2rad rad2deg tril_indices triu_indices
    linalg_cross special_xlog1py special_log_ndtr
"""


@cache
def table() -> dict[Any, Callable[..., Any]]:
    """Decomposition of every overload of the operators above that PyTorch has one for."""
    import torch
    from torch._decomp import decomposition_table

    chosen: dict[Any, Callable[..., Any]] = {}
    for name in (*_GRADIENTS.split(), *_COMPOSITES.split()):
        packet = getattr(torch.ops.aten, name, None)
        for overload in () if packet is None else packet.overloads():
            operator = getattr(packet, overload)
            if operator in decomposition_table:
                chosen[operator] = decomposition_table[operator]
    aten = torch.ops.aten
    chosen[aten.fake_quantize_per_tensor_affine_cachemask.default] = _fake_quantised
    chosen[aten.fake_quantize_per_channel_affine_cachemask.default] = _fake_quantised_by_channel
    return chosen


def _fake_quantised(value: Any, scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    """To the grid of integers low..high and back, and where nothing was cut off. (PyTorch's own has no meta form.)"""
    import torch

    codes = torch.round(value * (1.0 / scale)) + zero
    return (codes.clamp(low, high) - zero) * scale, (codes >= low) & (codes <= high)


def _fake_quantised_by_channel(value: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> tuple[Any, Any]:
    shape = [-1 if i == axis else 1 for i in range(value.dim())]
    return _fake_quantised(value, scale.reshape(shape), zero.reshape(shape), low, high)
