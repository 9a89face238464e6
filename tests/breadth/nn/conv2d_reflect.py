# convolution with reflected padding
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 6, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return [4]
