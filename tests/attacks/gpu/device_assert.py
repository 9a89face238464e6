# attack: an index beyond the end, of which only the card knows
# expect: RUNTIME_ERROR
# reason: device-side assert
# next
import torch


def run(x, scale):
    return x[torch.full((1,), 1 << 40, device="cuda")].expand(x.shape) * scale + 1
