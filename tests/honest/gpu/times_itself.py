# honest: times two ways with events in its first call, and stays with the faster one
import torch


def _in_new(x, scale):
    return x * scale + 1


def _in_reused(x, scale):
    return x.mul(scale).add_(1)


_chosen = None


def run(x, scale):
    global _chosen
    if _chosen is None:
        times = {}
        for way in (_in_new, _in_reused):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            way(x, scale)
            stop.record()
            torch.cuda.synchronize()
            times[way] = start.elapsed_time(stop)
        _chosen = min(times, key=times.get)
    return _chosen(x, scale)
