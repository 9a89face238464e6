# weight normalisation of a linear layer
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.v = nn.Parameter(torch.randn(6, width))
        self.g = nn.Parameter(torch.ones(6, 1))

    def forward(self, x):
        return F.linear(x, torch._weight_norm(self.v, self.g, 0))


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return [12]
