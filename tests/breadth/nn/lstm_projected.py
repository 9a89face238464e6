# recurrent: LSTM with a projection, bf16
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden, proj_size=3, dtype=torch.bfloat16)

    def forward(self, x):
        return self.rnn(x)[0]


def get_inputs():
    return [torch.randn(7, 2, 5, dtype=torch.bfloat16)]


def get_init_inputs():
    return [5, 6]
