import torch


def run(key_cache, value_cache, block_table, seq_lens, length):
    token = torch.arange(length, device=block_table.device)
    page_size = key_cache.shape[1]
    page, row = block_table[:, token // page_size], token % page_size
    padding = (token >= seq_lens.unsqueeze(1)).unsqueeze(-1).unsqueeze(-1)
    return key_cache[page, row].masked_fill(padding, 0), value_cache[page, row].masked_fill(padding, 0)


def custom_inputs(axes, device):
    sequences, width = axes["B"], axes["MB"]
    table = torch.randperm(axes["P"], dtype=torch.int32)[: sequences * width].view(sequences, width).clone()
    table[1:, : width // 4] = table[0, : width // 4]  # a prefix that all share
    longest = axes["T"]
    lengths = torch.randint((longest + 1) // 2, longest + 1, (axes["B"],), dtype=torch.int32)
    lengths[0] = longest
    return {"block_table": table, "seq_lens": lengths}
