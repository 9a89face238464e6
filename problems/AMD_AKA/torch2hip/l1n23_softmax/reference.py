import torch


def run(x):
    # exp(x - row maximum) / its row sum: the maximum is subtracted, so nothing overflows.
    return torch.softmax(x, dim=1)
