import torch

SCALE = 2.5


def run(x, router_weight, score_bias, topk):
    logits = x.float() @ router_weight.T
    score = torch.sigmoid(logits)
    # The bias selects and does not weigh. A stable sort keeps the lower of two equal experts in front.
    order = torch.sort(score + score_bias, dim=1, descending=True, stable=True).indices
    ids = order[:, :topk]
    chosen = score.gather(1, ids)
    weights = SCALE * chosen / (chosen.sum(1, keepdim=True) + 1e-20)
    return logits, ids.to(torch.int32), weights
