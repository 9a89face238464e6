import torch


def run(q, k, v):
    kv_heads, keys, channels = k.shape[1:]
    queries = q.shape[2]
    q = q.float().unflatten(1, (kv_heads, -1))
    scores = torch.einsum("bkgsd,bktd->bkgst", q, k.float()) * channels**-0.5

    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    later = torch.arange(keys, device=q.device) > position
    probability = torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)
    output = torch.einsum("bkgst,bktd->bkgsd", probability, v.float())
    return output.flatten(1, 2).bfloat16().contiguous()
