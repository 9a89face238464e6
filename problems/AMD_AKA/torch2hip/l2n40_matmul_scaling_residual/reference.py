import torch.nn.functional as F


def run(x, weight, bias, scaling_factor):
    # The residual is the linear result itself.
    linear = F.linear(x, weight, bias)
    return linear * scaling_factor + linear
