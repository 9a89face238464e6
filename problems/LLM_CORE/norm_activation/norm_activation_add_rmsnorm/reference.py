import torch

EPS = 1e-5


def run(x, residual, weight):
    # The statistics are those of the fp32 sum, not of the rounded residual.
    total = x.float() + residual.float()
    normalised = total * torch.rsqrt(total.square().mean(dim=1, keepdim=True) + EPS)
    return (normalised * weight.float()).bfloat16(), total.bfloat16()


def custom_inputs(axes, device):
    shape = (axes["M"], axes["N"])
    return {"x": row_scaled(shape), "residual": row_scaled(shape)}


def row_scaled(shape):
    # A quarter of the rows has a mean square near 1e-6, where eps decides the result.
    x = torch.randn(shape)
    x[3::4] *= 1e-3
    return x.bfloat16()
