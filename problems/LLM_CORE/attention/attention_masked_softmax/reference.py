import torch


def run(q, k, v, block_mask, block_size):
    kv_heads, keys, channels = k.shape[1:]
    queries = q.shape[2]
    q = q.float().unflatten(1, (kv_heads, -1))
    scores = torch.einsum("bkgsd,bktd->bkgst", q, k.float()) * channels**-0.5

    position = torch.arange(queries, device=q.device).unsqueeze(1) + (keys - queries)
    key = torch.arange(keys, device=q.device)
    visible = block_mask[..., key // block_size] & (key <= position)
    probability = torch.softmax(scores.masked_fill(~visible.unsqueeze(2), -torch.inf), dim=-1)
    output = torch.einsum("bkgst,bktd->bkgsd", probability, v.float())
    return output.flatten(1, 2).bfloat16().contiguous()


def custom_inputs(axes, device):
    # The block of the query itself, and as many earlier ones as there are up to TB - 1, drawn without repetition.
    batch, heads, queries, blocks = (axes[name] for name in ("B", "HK", "S", "NB"))
    own = (torch.arange(queries) + axes["T"] - queries) // axes["BK"]
    block = torch.arange(blocks)
    key = torch.rand(batch, heads, queries, blocks).masked_fill(block >= own.unsqueeze(1), -1.0)
    rank = key.argsort(dim=-1, descending=True).argsort(dim=-1)
    earlier = rank < own.clamp(max=axes["TB"] - 1).unsqueeze(1)
    return {"block_mask": earlier | (block == own.unsqueeze(1))}
