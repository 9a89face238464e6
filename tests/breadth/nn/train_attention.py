# training step: gradients of attention and layer normalisation
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        out = F.layer_norm(F.scaled_dot_product_attention(q, k, v, is_causal=True), (4,))
        return torch.autograd.grad(out.sin().sum(), (q, k, v))


def get_inputs():
    return [torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)]


def get_init_inputs():
    return []
