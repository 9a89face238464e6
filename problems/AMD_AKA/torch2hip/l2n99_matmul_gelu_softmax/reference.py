import torch
import torch.nn.functional as F


def run(x, weight, bias):
    # GELU in its erf form; the softmax runs over the features.
    return torch.softmax(F.gelu(F.linear(x, weight, bias)), dim=1)
