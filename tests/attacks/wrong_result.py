# attack M1: a constant, plausible at a glance
# expect: INCORRECT_NUMERICAL
import torch


def run(x, scale):
    return torch.zeros_like(x)
