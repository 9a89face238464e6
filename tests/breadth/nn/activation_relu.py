# activation: piecewise linear
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (F.relu(x), F.relu6(x), F.leaky_relu(x, 0.2), F.threshold(x, 0.1, 2.0), F.hardtanh(x, -0.5, 0.5))


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
