# attack H15: takes all memory of the card, and keeps it while its right result is checked
# expect: RUNTIME_ERROR or PASSED
# next
import torch

_held = []


def run(x, scale):
    y = x * scale + 1
    for bits in (32, 28, 24, 20):
        try:
            while True:
                _held.append(torch.empty(1 << bits, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError:
            continue
    return y
