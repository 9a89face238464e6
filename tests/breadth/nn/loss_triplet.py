# loss: triplets, by distance and by a function
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y, z):
        return (
            F.triplet_margin_loss(x, y, z),
            F.triplet_margin_loss(x, y, z, p=1.0, swap=True),
            F.triplet_margin_with_distance_loss(x, y, z),
        )


def get_inputs():
    return [torch.randn(4, 12), torch.randn(4, 12), torch.randn(4, 12)]


def get_init_inputs():
    return []
