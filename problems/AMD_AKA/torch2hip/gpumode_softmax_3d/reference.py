import torch


def run(v, axis):
    return torch.softmax(v, dim=axis)
