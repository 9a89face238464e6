# training step: gradients of a convolution with normalisation and pooling
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(channels, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.ReLU(), nn.MaxPool2d(2), nn.AvgPool2d(2)
        )

    def forward(self, x):
        x = x.detach().requires_grad_()
        weights = {name: p.detach().requires_grad_() for name, p in self.net.named_parameters()}
        out = torch.func.functional_call(self.net, weights, x)
        return torch.autograd.grad(out.square().sum(), [x, *weights.values()])


def get_inputs():
    return [torch.randn(2, 4, 8, 8)]


def get_init_inputs():
    return [4]
