# pooling, average, padding counted and not
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y, z):
        return (
            F.avg_pool1d(x, 3, 2, 1),
            F.avg_pool2d(y, 3, 2, 1, count_include_pad=False),
            F.avg_pool2d(y, 2, ceil_mode=True, divisor_override=3),
            F.avg_pool3d(z, 2),
        )


def get_inputs():
    return [torch.randn(2, 4, 11), torch.randn(2, 4, 9, 7), torch.randn(1, 2, 4, 6, 4)]


def get_init_inputs():
    return []
