import torch


def run(q, kv, kv_compressed, sinks, window, rate):
    queries, keys, entries = q.shape[2], kv.shape[1], kv_compressed.shape[1]
    q, kv, kv_compressed = q.float() * q.shape[3] ** -0.5, kv.float(), kv_compressed.float()
    local = torch.einsum("bhsd,btd->bhst", q, kv)
    compressed = torch.einsum("bhsd,bcd->bhsc", q, kv_compressed)

    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    key = torch.arange(keys, device=q.device)
    entry = torch.arange(entries, device=q.device)
    outside = (key > position) | (key <= position - window)
    # An entry is complete once its last token is the query's own; a partial last one is never seen.
    incomplete = (entry + 1) * rate > position + 1
    local = local.masked_fill(outside, -torch.inf)
    compressed = compressed.masked_fill(incomplete, -torch.inf)

    # The sink takes a share of the probability and has no value.
    sink = sinks.view(-1, 1, 1)
    largest = torch.maximum(local.amax(-1, keepdim=True), compressed.amax(-1, keepdim=True))
    largest = torch.maximum(largest, sink)
    local, compressed = torch.exp(local - largest), torch.exp(compressed - largest)
    total = local.sum(-1, keepdim=True) + compressed.sum(-1, keepdim=True) + torch.exp(sink - largest)
    weighed = torch.einsum("bhst,btd->bhsd", local, kv) + torch.einsum("bhsc,bcd->bhsd", compressed, kv_compressed)
    return (weighed / total).bfloat16().contiguous()
