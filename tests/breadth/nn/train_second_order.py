# training step: gradient of a gradient
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, w):
        w = w.detach().requires_grad_()
        loss = torch.tanh(x @ w).square().sum()
        (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), w)[0]


def get_inputs():
    return [torch.randn(4, 12), torch.randn(12, 3)]


def get_init_inputs():
    return []
