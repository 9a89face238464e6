# loss: Poisson and Gaussian likelihood
import torch
from torch import nn
from torch.nn import functional as F

POSITIVE = True


class Model(nn.Module):
    def forward(self, x, y, v):
        return (
            F.poisson_nll_loss(x, y),
            F.poisson_nll_loss(x, y, log_input=False, full=True),
            F.gaussian_nll_loss(x, y, v),
        )


def get_inputs():
    return [torch.rand(4, 12) + 0.5, torch.rand(4, 12) * 3 + 0.5, torch.rand(4, 12) + 0.5]


def get_init_inputs():
    return []
