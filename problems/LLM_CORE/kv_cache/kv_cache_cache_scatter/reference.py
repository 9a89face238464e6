import torch


def run(key, value, key_cache, value_cache, block_table, seq_lens):
    token = torch.arange(key.shape[1], device=key.device)
    page_size = key_cache.shape[1]
    slot = block_table[:, token // page_size] * page_size + token % page_size
    slot = torch.where(token < seq_lens.unsqueeze(1), slot, -1).flatten()
    return written(key_cache, slot, key.flatten(0, 1)), written(value_cache, slot, value.flatten(0, 1))


def written(cache, slot, rows):
    # Index -1 is the spare row at the end, which is cut off again: a view, still contiguous.
    lines = cache.flatten(0, 1)
    lines = torch.cat((lines, lines.new_zeros(1, *lines.shape[1:])))
    lines[slot] = rows
    return lines[:-1].unflatten(0, cache.shape[:2])


def custom_inputs(axes, device):
    sequences, width = axes["B"], axes["MB"]
    table = torch.randperm(axes["P"], dtype=torch.int32)[: sequences * width].view(sequences, width)
    longest = axes["T"]
    lengths = torch.randint((longest + 1) // 2, longest + 1, (axes["B"],), dtype=torch.int32)
    lengths[0] = longest
    return {"block_table": table, "seq_lens": lengths}
