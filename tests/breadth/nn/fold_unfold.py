# windows unfolded to columns and folded back
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        columns = F.unfold(x, 3, padding=1, stride=2)
        return columns, F.fold(columns, (9, 7), 3, padding=1, stride=2)


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return []
