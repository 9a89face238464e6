# training step: a step of AdamW, state written in place
import torch
from torch import nn

IN_PLACE = ("weight", "first", "second")
POSITIVE = True


class Model(nn.Module):
    def forward(self, weight, gradient, first, second):
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        weight.mul_(1 - 0.01).addcdiv_(first / 0.19, (second / 0.0199).sqrt() + 1e-8, value=-0.1)
        return weight


def get_inputs():
    return [torch.randn(4, 12), torch.randn(4, 12), torch.randn(4, 12), torch.rand(4, 12)]


def get_init_inputs():
    return []
