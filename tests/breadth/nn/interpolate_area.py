# resampling by area, and bilinear with antialiasing
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (
            F.interpolate(x, size=(3, 3), mode="area"),
            F.interpolate(x, size=(4, 3), mode="bilinear", antialias=True),
        )


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return []
