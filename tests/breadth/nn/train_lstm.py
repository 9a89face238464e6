# training step: gradients through a whole LSTM
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden)

    def forward(self, x):
        weights = {name: p.detach().requires_grad_() for name, p in self.rnn.named_parameters()}
        out, _ = torch.func.functional_call(self.rnn, weights, x)
        return torch.autograd.grad(out.square().sum(), list(weights.values()))


def get_inputs():
    return [torch.randn(3, 2, 5)]


def get_init_inputs():
    return [5, 4]
