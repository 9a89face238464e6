# training step: gradients of interpolation and of pooling with uneven windows
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        x = x.detach().requires_grad_()
        parts = [
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, size=(5, 11), mode="bilinear"),
            F.interpolate(x, size=(5, 11), mode="bicubic", align_corners=True),
            F.interpolate(x, size=(4, 3), mode="bilinear", antialias=True),
            F.adaptive_avg_pool2d(x, (4, 7)),
            F.adaptive_max_pool2d(x, (4, 3)),
        ]
        return torch.autograd.grad(sum(part.square().sum() for part in parts), x)[0]


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return []
