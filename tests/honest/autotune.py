# honest: times two ways in its first call and stays with the faster one
import time

import torch


def _in_one(x, scale):
    return torch.addcmul(torch.ones((), dtype=x.dtype), x, torch.tensor(scale, dtype=x.dtype))


def _in_two(x, scale):
    return x.mul(scale).add_(1)


_chosen = None


def run(x, scale):
    global _chosen
    if _chosen is None:
        times = {}
        for way in (_in_one, _in_two):
            start = time.perf_counter()
            way(x, scale)
            times[way] = time.perf_counter() - start
        _chosen = min(times, key=times.get)
    return _chosen(x, scale)
