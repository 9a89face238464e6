# honest: returns the same buffer at every call, newly filled
import torch

_buffers = {}


def run(x, scale):
    result = _buffers.setdefault(tuple(x.shape), torch.empty_like(x))
    torch.mul(x, scale, out=result)
    return result.add_(1)
