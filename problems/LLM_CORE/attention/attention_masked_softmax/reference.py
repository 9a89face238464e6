import torch


def run(q, k, v, block_mask, block_size):
    kv_heads, keys = k.shape[1:3]
    queries = q.shape[2]
    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    key = torch.arange(keys, device=q.device)
    hidden = ~(block_mask[..., key // block_size] & (key <= position))

    # One query head of each group at a time: scores of all heads at once would not fit beside long contexts.
    k, v = k.float(), v.float()
    heads = [attend(head.float(), k, v, hidden) for head in q.unflatten(1, (kv_heads, -1)).unbind(2)]
    return torch.stack(heads, dim=2).flatten(1, 2)


def attend(q, k, v, hidden):
    scores = (q @ k.transpose(2, 3)) * q.shape[3] ** -0.5
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
