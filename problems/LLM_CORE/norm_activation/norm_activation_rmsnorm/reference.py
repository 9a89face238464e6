import torch

EPS = 1e-6


def run(x, weight):
    x = x.float()
    normalised = x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + EPS)
    return (normalised * (1 + weight.float())).bfloat16()


def custom_inputs(axes, device):
    return {"x": row_scaled((axes["M"], axes["N"]))}


def row_scaled(shape):
    # A quarter of the rows has a mean square near 1e-6, where eps decides the result.
    x = torch.randn(shape)
    x[3::4] *= 1e-3
    return x.bfloat16()
