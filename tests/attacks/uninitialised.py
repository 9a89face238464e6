# attack C13: hopes that fresh memory holds an old result
# expect: INCORRECT_NUMERICAL
import torch


def run(x, scale):
    return torch.empty_like(x)
