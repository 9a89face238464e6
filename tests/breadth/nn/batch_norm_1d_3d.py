# batch normalisation of vectors, sequences and volumes
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.flat = nn.BatchNorm1d(channels).eval()
        self.deep = nn.BatchNorm3d(channels, affine=False).eval()

    def forward(self, x, y, z):
        return self.flat(x), self.flat(y), self.deep(z)


def get_inputs():
    return [torch.randn(5, 4), torch.randn(2, 4, 6), torch.randn(2, 4, 3, 4, 2)]


def get_init_inputs():
    return [4]
