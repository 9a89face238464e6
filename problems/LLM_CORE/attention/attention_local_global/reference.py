import torch


def run(q, kv, kv_compressed, sinks, window, rate):
    queries, keys, entries = q.shape[2], kv.shape[1], kv_compressed.shape[1]
    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    key = torch.arange(keys, device=q.device)
    entry = torch.arange(entries, device=q.device)
    outside = (key > position) | (key <= position - window)
    # An entry is complete once its last token is the query's own; a partial last one is never seen.
    incomplete = (entry + 1) * rate > position + 1

    # A head at a time: scores of all heads at once would not fit beside long contexts.
    kv, kv_compressed = kv.float(), kv_compressed.float()
    heads = [
        attend(head.float(), kv, kv_compressed, sink, outside, incomplete)
        for head, sink in zip(q.unbind(1), sinks.unbind(0))
    ]
    return torch.stack(heads, dim=1)


def attend(q, kv, kv_compressed, sink, outside, incomplete):
    q = q * q.shape[2] ** -0.5
    local = (q @ kv.transpose(1, 2)).masked_fill(outside, -torch.inf)
    compressed = (q @ kv_compressed.transpose(1, 2)).masked_fill(incomplete, -torch.inf)

    # The sink takes a share of the probability and has no value.
    largest = torch.maximum(local.amax(-1, keepdim=True), compressed.amax(-1, keepdim=True))
    largest = torch.maximum(largest, sink)
    local, compressed = torch.exp(local - largest), torch.exp(compressed - largest)
    total = local.sum(-1, keepdim=True) + compressed.sum(-1, keepdim=True) + torch.exp(sink - largest)
    return ((local @ kv + compressed @ kv_compressed) / total).bfloat16()
