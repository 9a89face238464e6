# dropout in evaluation
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y):
        return (
            F.dropout(x, 0.5, training=False),
            F.alpha_dropout(x, 0.3),
            F.dropout2d(y, 0.5, training=False),
            F.feature_alpha_dropout(y),
        )


def get_inputs():
    return [torch.randn(4, 12), torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return []
