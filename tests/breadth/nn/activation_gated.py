# activation: gated linear units
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)

    def forward(self, x):
        hidden = self.up(x)
        gate, value = hidden.chunk(2, dim=-1)
        return F.glu(hidden), F.silu(gate) * value, F.gelu(gate) * value


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return [12]
