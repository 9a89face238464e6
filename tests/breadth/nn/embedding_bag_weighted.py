# embedding bags, weighted sums at known offsets
import torch
from torch import nn

KNOWN = ("offsets",)


class Model(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.EmbeddingBag(rows, width, mode="sum")

    def forward(self, index, offsets, weights):
        return self.table(index, offsets, per_sample_weights=weights)


def get_inputs():
    return [torch.randint(0, 10, (9,)), torch.tensor([0, 4, 7]), torch.randn(9)]


def get_init_inputs():
    return [10, 6]
