# convolution, depthwise then pointwise, fp16
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depth = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, dtype=torch.float16)
        self.point = nn.Conv2d(channels, 6, 1, dtype=torch.float16)

    def forward(self, x):
        return self.point(F.relu(self.depth(x)))


def get_inputs():
    return [torch.randn(2, 4, 9, 7, dtype=torch.float16)]


def get_init_inputs():
    return [4]
