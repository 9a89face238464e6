# convolution of one sample, and with weights that are inputs
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, w):
        return (F.conv2d(x, w), F.conv_transpose2d(x, w.transpose(0, 1)), F.conv1d(x[:, 0], w[:, :, 0]))


def get_inputs():
    return [torch.randn(4, 9, 7), torch.randn(3, 4, 3, 3)]


def get_init_inputs():
    return []
