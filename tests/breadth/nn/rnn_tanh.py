# recurrent: RNN, two layers
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.rnn = nn.RNN(width, hidden, num_layers=2)

    def forward(self, x):
        out, h = self.rnn(x)
        return out, h


def get_inputs():
    return [torch.randn(7, 2, 5)]


def get_init_inputs():
    return [5, 6]
