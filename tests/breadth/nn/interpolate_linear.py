# resampling, linear in one, two and three dimensions
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y, z):
        return (
            F.interpolate(x, size=7, mode="linear"),
            F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True),
            F.interpolate(z, size=(3, 5, 6), mode="trilinear"),
        )


def get_inputs():
    return [torch.randn(2, 4, 11), torch.randn(2, 4, 9, 7), torch.randn(1, 2, 4, 3, 4)]


def get_init_inputs():
    return []
