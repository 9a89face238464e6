import torch


def run(x, weight):
    # A group is a stretch of each token's row, so the product reads x through a strided view.
    output = torch.einsum("mgk,gnk->mgn", x.float(), weight.float())
    return output.bfloat16().contiguous()
