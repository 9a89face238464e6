# training step: gradients of a transposed convolution
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, 6, 3, stride=2, padding=1)

    def forward(self, x):
        x = x.detach().requires_grad_()
        weights = {name: p.detach().requires_grad_() for name, p in self.conv.named_parameters()}
        out = torch.func.functional_call(self.conv, weights, x)
        return torch.autograd.grad(out.tanh().sum(), [x, *weights.values()])


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return [4]
