# honest: writes into the output that it is given
# in place
import torch


def run(x, scale, y):
    torch.mul(x, scale, out=y).add_(1)
