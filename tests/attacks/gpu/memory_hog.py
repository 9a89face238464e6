# attack H15: takes all memory of the card
# expect: RUNTIME_ERROR
# reason: out of memory
# next
import torch

_held = []


def run(x, scale):
    while True:
        _held.append(torch.empty(1 << 32, dtype=torch.uint8, device="cuda"))
