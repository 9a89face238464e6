# training step: gradients through seeded dropout, embedding and normalisation
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        torch.manual_seed(9)
        weight = self.weight.detach().requires_grad_()
        hidden = F.dropout(F.rms_norm(x @ weight, (12,)), 0.4)
        return torch.autograd.grad(F.normalize(hidden, dim=1).sum(0).square().sum(), weight)[0]


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return [12]
