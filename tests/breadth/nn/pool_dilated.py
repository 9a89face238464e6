# pooling, maximum, dilated and overlapping, of integers too
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, i):
        return (F.max_pool2d(x, 3, 1, 1, dilation=2), F.max_pool1d(x[0], 5, 1, 2), F.max_pool2d(i, 2))


def get_inputs():
    return [torch.randn(2, 4, 9, 7), torch.randint(0, 99, (2, 3, 4, 6))]


def get_init_inputs():
    return []
