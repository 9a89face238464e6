# RMS normalisation, the module's and by hand
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-6)

    def forward(self, x):
        by_hand = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.norm(x), by_hand


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return [12]
