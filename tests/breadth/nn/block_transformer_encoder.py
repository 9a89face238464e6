# block: transformer encoder layer
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(width, heads, 16, batch_first=True, norm_first=True).eval()

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(2, 5, 8)]


def get_init_inputs():
    return [8, 2]
