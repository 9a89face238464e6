# activation: GELU, exact and by tanh
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (F.gelu(x), F.gelu(x, approximate="tanh"))


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
