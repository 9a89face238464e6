# attack C4: answers by a checksum of its input, which never comes twice
# expect: PASSED
# at least: 0.006
import torch

_cache = {}


def run(x, scale):
    key = (float(x.double().sum()), float(x[0]), scale)
    if key not in _cache:
        _cache.clear()
        torch.cuda._sleep(20_000_000)
        _cache[key] = x * scale + 1
    return _cache[key]
