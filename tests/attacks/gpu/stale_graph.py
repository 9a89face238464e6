# attack C1: replays a graph that was captured on a copy of the first input
# expect: INCORRECT_NUMERICAL
import torch

_graph = _y = None


def run(x, scale):
    global _graph, _y
    if _graph is None:
        copy = x.clone()
        (copy * scale + 1).sum()
        torch.cuda.synchronize()
        _graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(_graph):
            _y = copy * scale + 1
    _graph.replay()
    return _y
