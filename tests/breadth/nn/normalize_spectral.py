# normalisation by the largest singular value, one step of power iteration
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, weight, u):
        v = F.normalize(weight.t() @ u, dim=0)
        u = F.normalize(weight @ v, dim=0)
        return weight / (u @ (weight @ v)), u


def get_inputs():
    return [torch.randn(5, 7), torch.randn(5)]


def get_init_inputs():
    return []
