# training step: gradients through resampling at a grid, to the image and to the map
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, theta):
        x, theta = x.detach().requires_grad_(), theta.detach().requires_grad_()
        grid = F.affine_grid(theta, [2, 4, 5, 6], align_corners=False)
        out = F.grid_sample(x, grid, align_corners=False) + F.grid_sample(
            x, grid, padding_mode="border", align_corners=True
        )
        return torch.autograd.grad(out.square().sum(), (x, theta))


def get_inputs():
    return [torch.randn(2, 4, 9, 7), torch.randn(2, 2, 3)]


def get_init_inputs():
    return []
