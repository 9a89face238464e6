# honest: torch.compile, with the compiler that is there
# slow
import torch


@torch.compile
def run(x, scale):
    return x * scale + 1
