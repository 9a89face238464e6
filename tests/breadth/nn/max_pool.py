# pooling, maximum, with positions and rounded up
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y, z):
        return (
            F.max_pool1d(x, 3, 2, 1),
            F.max_pool2d(y, 3, 2, ceil_mode=True),
            F.max_pool3d(z, 2),
            F.max_pool2d(y, 2, return_indices=True),
        )


def get_inputs():
    return [torch.randn(2, 4, 11), torch.randn(2, 4, 9, 7), torch.randn(1, 2, 4, 6, 4)]


def get_init_inputs():
    return []
