# training step: gradients of convolution, pooling and normalisation of volumes
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv3d(channels, 4, 3, padding=1, bias=False),
            nn.InstanceNorm3d(4, affine=True),
            nn.ELU(),
            nn.MaxPool3d(2),
            nn.AvgPool3d(2),
        )

    def forward(self, x):
        weights = {name: p.detach().requires_grad_() for name, p in self.net.named_parameters()}
        out = torch.func.functional_call(self.net, weights, x)
        return torch.autograd.grad(out.square().sum(), list(weights.values()))


def get_inputs():
    return [torch.randn(1, 2, 4, 8, 4)]


def get_init_inputs():
    return [2]
