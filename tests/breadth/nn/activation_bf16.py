# activation in bf16, computed in float32
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (F.gelu(x), F.silu(x), F.softplus(x), F.elu(x))


def get_inputs():
    return [torch.randn(4, 12, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
