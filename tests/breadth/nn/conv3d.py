# convolution, three dimensions
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv3d(channels, 3, (2, 3, 3), stride=(1, 2, 1))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(1, 4, 5, 7, 6)]


def get_init_inputs():
    return [4]
