# training step: gradients through the steps of an LSTM cell
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.cell = nn.LSTMCell(width, hidden)

    def forward(self, x):
        weights = {name: p.detach().requires_grad_() for name, p in self.cell.named_parameters()}
        h = c = torch.zeros(2, 6, device=x.device)
        for step in x:
            h, c = torch.func.functional_call(self.cell, weights, (step, (h, c)))
        return torch.autograd.grad(h.sum(), list(weights.values()))


def get_inputs():
    return [torch.randn(3, 2, 5)]


def get_init_inputs():
    return [5, 6]
