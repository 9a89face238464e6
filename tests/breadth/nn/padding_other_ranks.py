# padding of sequences and volumes
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, z):
        return (
            F.pad(x, (2, 1), mode="reflect"),
            F.pad(x, (2, 1), mode="replicate"),
            F.pad(z, (1, 1, 1, 0, 0, 1), mode="replicate"),
            F.pad(z, (1, 1, 1, 0, 0, 1), mode="reflect"),
        )


def get_inputs():
    return [torch.randn(2, 4, 11), torch.randn(1, 2, 4, 3, 5)]


def get_init_inputs():
    return []
