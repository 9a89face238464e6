# random numbers drawn in place: uniform, normal, exponential, Bernoulli
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        torch.manual_seed(5)
        uniform = torch.empty_like(x).uniform_(-1, 1)
        normal = torch.empty_like(x).normal_(0.5, 2)
        gumbel = -torch.empty_like(x).exponential_().log()
        chosen = torch.bernoulli(torch.empty_like(x), 0.5)
        return x + uniform, x * normal, F.softmax(x + gumbel, 1), torch.rand_like(x) + chosen + torch.randn_like(x)


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
