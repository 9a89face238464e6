# attack C13: frees a result, and hopes that the next call's fresh memory still holds it
# expect: INCORRECT_NUMERICAL
import torch

_done = False


def run(x, scale):
    global _done
    if not _done:
        _done = True
        return x * scale + 1
    return torch.empty_like(x)
