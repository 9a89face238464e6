# block: residual convolution with batch normalisation
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.a, self.b = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.eval()

    def forward(self, x):
        return F.relu(x + self.b(self.second(F.relu(self.a(self.first(x))))))


def get_inputs():
    return [torch.randn(2, 4, 9, 7)]


def get_init_inputs():
    return [4]
