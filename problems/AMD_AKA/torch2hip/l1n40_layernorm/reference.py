import torch.nn.functional as F


def run(x, weight, bias, eps):
    # Biased variance over the last axis, then gain and shift.
    return F.layer_norm(x, weight.shape, weight, bias, eps)
