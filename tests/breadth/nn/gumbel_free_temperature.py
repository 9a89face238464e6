# softmax with temperature, and the entropy of the result
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        p = F.softmax(x / 0.7, dim=-1)
        return p, torch.special.entr(p).sum(-1)


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
