# activation: hard sigmoid, hard swish, shrinkage
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (F.hardsigmoid(x), F.hardswish(x), F.hardshrink(x, 0.3), F.softshrink(x, 0.3), F.tanhshrink(x))


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
