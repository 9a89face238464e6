import torch


def run(q, k, v, sinks):
    kv_heads, keys, channels = k.shape[1:]
    queries = q.shape[2]
    q = q.float().unflatten(1, (kv_heads, -1))
    scores = torch.einsum("bkgsd,bktd->bkgst", q, k.float()) * channels**-0.5

    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    later = torch.arange(keys, device=q.device) > position
    scores = scores.masked_fill(later, -torch.inf)

    # The sink takes a share of the probability and has no value.
    sink = sinks.float().view(kv_heads, -1, 1, 1)
    largest = torch.maximum(scores.amax(-1, keepdim=True), sink)
    weight = torch.exp(scores - largest)
    total = weight.sum(-1, keepdim=True) + torch.exp(sink - largest)
    output = torch.einsum("bkgst,bktd->bkgsd", weight, v.float()) / total
    return output.flatten(1, 2).bfloat16().contiguous()
