# honest: keeps a workspace by shape, not a result
import torch

_workspace = {}


def run(x, scale):
    space = _workspace.setdefault(tuple(x.shape), torch.empty_like(x))
    torch.mul(x, scale, out=space)
    return space + 1
