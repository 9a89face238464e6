# training step: gradients through a whole GRU, two layers
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.rnn = nn.GRU(width, hidden, 2)

    def forward(self, x):
        x = x.detach().requires_grad_()
        out, _ = self.rnn(x)
        return torch.autograd.grad(out.sum(), x)[0]


def get_inputs():
    return [torch.randn(3, 2, 5)]


def get_init_inputs():
    return [5, 4]
