# block: linear attention, causal by chunks of the running sum
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        state = (k[..., :, None] * v[..., None, :]).cumsum(2)
        norm = k.cumsum(2)
        return (q[..., :, None] * state).sum(-2) / ((q * norm).sum(-1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)]


def get_init_inputs():
    return []
