# block: mixer, over tokens and over channels
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, channels):
        super().__init__()
        self.tokens = nn.Sequential(nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens))
        self.channels = nn.Sequential(nn.Linear(channels, 8), nn.GELU(), nn.Linear(8, channels))
        self.a, self.b = nn.LayerNorm(channels), nn.LayerNorm(channels)

    def forward(self, x):
        x = x + self.tokens(self.a(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.b(x))


def get_inputs():
    return [torch.randn(2, 5, 6)]


def get_init_inputs():
    return [5, 6]
