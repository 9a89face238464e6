# activation: SiLU, Mish
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (F.silu(x), F.mish(x))


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
