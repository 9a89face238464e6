"""PyTorch's precision settings: products of float32 in float32, sums of half precision in float32, on both sides.

Set in the referee and in every interpreter that workers are forked from; recorded as read back.
"""

from __future__ import annotations

from typing import Any


def set_full(torch: Any) -> None:
    """Turn TF32 and reduced-precision reductions off: cuBLAS, cuDNN, and on ROCm hipBLAS and MIOpen behind them."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def settings(torch: Any) -> dict[str, str]:
    """The settings in force."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "matmul_allow_tf32": str(torch.backends.cuda.matmul.allow_tf32),
        "cudnn_allow_tf32": str(torch.backends.cudnn.allow_tf32),
        "fp16_reduced_precision_reduction": str(torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction),
        "bf16_reduced_precision_reduction": str(torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction),
    }
