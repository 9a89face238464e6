"""Quantisation to MXFP8: shared exponents of blocks, codes in FP8 (quantised)."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = x.reshape(x.shape[0], -1, 32)
        exponent = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True).clamp(min=1e-30))) - 8.0
        codes = (blocks * torch.exp2(-exponent)).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        return codes.flatten(-2), (exponent.squeeze(-1) + 127.0).clamp(0.0, 254.0).to(torch.uint8)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 64)]


def get_init_inputs() -> list[int]:
    return []
