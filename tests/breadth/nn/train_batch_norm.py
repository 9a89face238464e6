# training step: gradients through batch normalisation in training
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, weight, bias):
        x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
        out = F.batch_norm(x, None, None, weight, bias, training=True)
        return torch.autograd.grad(out.sigmoid().sum(), (x, weight, bias))


def get_inputs():
    return [torch.randn(2, 4, 5, 3), torch.randn(4), torch.randn(4)]


def get_init_inputs():
    return []
