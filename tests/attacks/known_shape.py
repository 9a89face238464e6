# attack M7: right for a shape that it knows, with values that it has from there
# expect: INCORRECT_NUMERICAL
import torch


def run(x, scale):
    if x.shape == (1000,) and scale == 2.5:
        return torch.full_like(x, 1.0)
    return x * scale + 1
