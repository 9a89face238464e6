# convolution, transposed, three dimensions
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, 2, 2, stride=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(1, 4, 3, 4, 2)]


def get_init_inputs():
    return [4]
