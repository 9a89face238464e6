# convolution over time first
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, w, b):
        return torch.conv_tbc(x, w, b, 1)


def get_inputs():
    return [torch.randn(9, 2, 4), torch.randn(3, 4, 5), torch.randn(5)]


def get_init_inputs():
    return []
