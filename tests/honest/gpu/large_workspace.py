# honest: a workspace of 4 GiB, kept from call to call, and temporaries that are freed
import torch

_workspace = None


def run(x, scale):
    global _workspace
    if _workspace is None:
        _workspace = torch.empty(1 << 30, device="cuda")
    space = _workspace[: len(x)]
    torch.mul(x, scale, out=space)
    return space.clone().add_(1)
