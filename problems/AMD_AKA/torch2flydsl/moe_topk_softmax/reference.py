import torch


def run(gating, bias, topk, route_scale):
    # The bias takes part in the selection only; the weights are the plain probabilities, not renormalised.
    probability = torch.softmax(gating.float(), dim=1)
    ids = torch.topk(probability + bias, topk, dim=1).indices
    weights = probability.gather(1, ids) * route_scale
    return weights, ids.to(torch.int32)
