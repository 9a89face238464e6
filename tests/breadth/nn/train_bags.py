# training step: gradient of embedding bags, and of a normalised weight
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, index, table, v, g):
        table, v, g = (t.detach().requires_grad_() for t in (table, v, g))
        bags = F.embedding_bag(index, table, mode="sum") + F.embedding_bag(index, table, mode="mean")
        out = F.linear(bags, torch._weight_norm(v, g, 0))
        return torch.autograd.grad(out.square().sum(), (table, v, g))


def get_inputs():
    return [torch.randint(0, 10, (3, 4)), torch.randn(10, 6), torch.randn(5, 6), torch.rand(5, 1) + 0.5]


def get_init_inputs():
    return []
