import torch


def run(q, k, v, window):
    kv_heads, keys = k.shape[1:3]
    queries = q.shape[2]
    scores = torch.einsum("bkgsd,bktd->bkgst", q.float().unflatten(1, (kv_heads, -1)), k.float())

    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    key = torch.arange(keys, device=q.device)
    hidden = (key > position) | (key <= position - window)
    probability = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
    output = torch.einsum("bkgst,bktd->bkgsd", probability, v.float())
    return output.flatten(1, 2).bfloat16().contiguous()
