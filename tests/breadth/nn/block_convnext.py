# block: ConvNeXt
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depth = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), 0.1))

    def forward(self, x):
        hidden = self.norm(self.depth(x).permute(0, 2, 3, 1))
        hidden = self.scale * self.down(F.gelu(self.up(hidden)))
        return x + hidden.permute(0, 3, 1, 2)


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return [4]
