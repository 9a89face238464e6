import torch

BLOCKS = 16


def run(q, k, v, block_mask, block_size, selected):
    kv_heads, keys = k.shape[1:3]
    queries = q.shape[2]
    position = (torch.arange(queries, device=q.device) + (keys - queries)).view(-1, 1, 1)

    # The keys of the selected blocks, the same number for each query: blocks that fill it up are hidden again, as are
    # keys after the query. In ascending order only the end of the last block lies behind the keys, and is cut off.
    block = torch.topk(block_mask.to(torch.int32), min(selected, block_mask.shape[3]), dim=-1).indices
    block = block.sort(dim=-1).values
    key = block.unsqueeze(-1) * block_size + torch.arange(block_size, device=q.device)
    hidden = ~block_mask.gather(-1, block).unsqueeze(-1) | (key > position)
    within = torch.arange(min(key.shape[3] * block_size, keys), device=q.device)
    key, hidden = key.flatten(3)[..., within].clamp(max=keys - 1), hidden.flatten(3)[..., within].unsqueeze(3)

    # The selected rows of all queries at once would not fit beside long contexts.
    batch = torch.arange(q.shape[0], device=q.device).view(-1, 1, 1, 1)
    head = torch.arange(kv_heads, device=q.device).view(-1, 1, 1)
    grouped = q.unflatten(1, (kv_heads, -1)).transpose(2, 3)
    parts = [part.tensor_split(min(BLOCKS, queries), dim=2) for part in (grouped, key, hidden)]
    outputs = [
        attend(query.float(), k[batch, head, rows].float(), v[batch, head, rows].float(), unseen)
        for query, rows, unseen in zip(*parts)
    ]
    return torch.cat(outputs, dim=2).transpose(2, 3).flatten(1, 2).contiguous()


def attend(q, k, v, hidden):
    scores = (q @ k.transpose(3, 4)) * q.shape[4] ** -0.5
    probability = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
    return (probability @ v).bfloat16()


def custom_inputs(axes, device):
    # The block of the query itself, and as many earlier ones as there are up to TB - 1, drawn without repetition.
    batch, heads, queries, blocks = (axes[name] for name in ("B", "HK", "S", "NB"))
    own = (torch.arange(queries) + axes["T"] - queries) // axes["BK"]
    block = torch.arange(blocks)
    key = torch.rand(batch, heads, queries, blocks).masked_fill(block >= own.unsqueeze(1), -1.0)
    rank = key.argsort(dim=-1, descending=True).argsort(dim=-1)
    earlier = rank < own.clamp(max=axes["TB"] - 1).unsqueeze(1)
    return {"block_mask": earlier | (block == own.unsqueeze(1))}
