# pooling, adaptive maximum, windows even and uneven
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y, z):
        return (
            F.adaptive_max_pool1d(x, 4),
            F.adaptive_max_pool2d(y, (3, 7)),
            F.adaptive_max_pool2d(y, (4, 3), return_indices=True),
            F.adaptive_max_pool3d(z, (2, 3, 4)),
        )


def get_inputs():
    return [torch.randn(2, 4, 11), torch.randn(2, 4, 9, 7), torch.randn(1, 2, 4, 7, 4)]


def get_init_inputs():
    return []
