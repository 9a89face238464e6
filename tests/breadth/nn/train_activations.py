# training step: gradients of the activations
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        x = x.detach().requires_grad_()
        total = F.gelu(x) + F.silu(x) + F.mish(x) + F.elu(x) + F.softplus(x) + F.hardswish(x) + F.leaky_relu(x, 0.1)
        total = total + F.logsigmoid(x) + torch.tanh(x) + F.gelu(x, approximate="tanh") + F.log_softmax(x, 1)
        total = total + F.hardshrink(x) + F.softshrink(x) + F.celu(x) + F.selu(x) + F.hardsigmoid(x) + F.relu6(x)
        total = total + F.softsign(x) + F.threshold(x, 0.1, 1.0) + F.glu(torch.cat([x, x], 1), 1) + F.hardtanh(x)
        return torch.autograd.grad((total * F.softmax(x, 1)).sum(), x)[0]


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
