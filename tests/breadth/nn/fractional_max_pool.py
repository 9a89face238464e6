# pooling, fractional maximum, at given offsets
import torch
from torch import nn

KNOWN = ("u",)


class Model(nn.Module):
    def forward(self, x, u):
        return torch.ops.aten.fractional_max_pool2d(x, [2, 2], [5, 4], u)


def get_inputs():
    return [torch.randn(2, 4, 9, 7), torch.full((2, 4, 2), 0.3)]


def get_init_inputs():
    return []
