# resampling at a grid of an affine map
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, theta):
        grid = F.affine_grid(theta, [2, 4, 5, 6], align_corners=False)
        return F.grid_sample(x, grid, align_corners=False), F.grid_sample(
            x, grid, mode="nearest", padding_mode="border", align_corners=True
        )


def get_inputs():
    return [torch.randn(2, 4, 9, 7), torch.randn(2, 2, 3)]


def get_init_inputs():
    return []
