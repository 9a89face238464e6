# honest: captures a graph that reads the input where it is, one a scale, and replays it
import torch

_graphs = {}


def run(x, scale):
    key = (x.data_ptr(), tuple(x.shape), scale)
    if key not in _graphs:
        x * scale + 1
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * scale + 1
        _graphs[key] = (graph, y)
    graph, y = _graphs[key]
    graph.replay()
    return y
