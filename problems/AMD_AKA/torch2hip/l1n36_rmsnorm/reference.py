import torch


def run(x, eps):
    # fp32 inside, one rounding at the store; eps stands inside the root.
    value = x.float()
    mean_square = value.square().mean(dim=1, keepdim=True)
    return (value * torch.rsqrt(mean_square + eps)).bfloat16()
