# padding: constant, reflected, replicated, circular
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return (
            F.pad(x, (1, 2, 0, 1), value=0.5),
            F.pad(x, (1, 2, 2, 1), mode="reflect"),
            F.pad(x, (1, 2, 2, 1), mode="replicate"),
            F.pad(x, (1, 2, 2, 1), mode="circular"),
            F.pad(x, (-1, 1)),
        )


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return []
