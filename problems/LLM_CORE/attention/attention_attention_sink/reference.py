import torch


def run(q, k, v, sinks):
    kv_heads, keys = k.shape[1:3]
    queries = q.shape[2]
    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    later = torch.arange(keys, device=q.device) > position

    # One query head of each group at a time: scores of all heads at once would not fit beside long contexts.
    k, v = k.float(), v.float()
    sinks = sinks.float().view(kv_heads, -1, 1, 1).unbind(1)
    heads = q.unflatten(1, (kv_heads, -1)).unbind(2)
    heads = [attend(head.float(), k, v, sink, later) for head, sink in zip(heads, sinks)]
    return torch.stack(heads, dim=2).flatten(1, 2)


def attend(q, k, v, sink, hidden):
    scores = (q @ k.transpose(2, 3)) * q.shape[3] ** -0.5
    scores = scores.masked_fill(hidden, -torch.inf)
    # The sink takes a share of the probability and has no value.
    largest = torch.maximum(scores.amax(-1, keepdim=True), sink)
    weight = torch.exp(scores - largest)
    total = weight.sum(-1, keepdim=True) + torch.exp(sink - largest)
    return ((weight @ v) / total).bfloat16()
