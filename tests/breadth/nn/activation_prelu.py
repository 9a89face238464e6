# activation: PReLU with a slope a channel, RReLU in evaluation
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.prelu = nn.PReLU(channels)

    def forward(self, x):
        return self.prelu(x), F.rrelu(x, 0.1, 0.3, training=False)


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return [4]
