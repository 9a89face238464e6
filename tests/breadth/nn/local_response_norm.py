# local response normalisation
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.local_response_norm(x, 3, alpha=0.1, beta=0.75, k=1.5)


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return []
