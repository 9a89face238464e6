# block: selective state space, a step after the other
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width, states):
        super().__init__()
        self.a = nn.Parameter(-torch.rand(width, states) - 0.5)
        self.project = nn.Linear(width, width + 2 * states)

    def forward(self, x):
        states = self.a.shape[1]
        delta, b, c = self.project(x).split([x.shape[2], states, states], -1)
        delta = F.softplus(delta)
        decay = torch.exp(delta[..., None] * self.a)
        drive = (delta * x)[..., None] * b[:, :, None, :]
        state, outputs = torch.zeros_like(drive[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + drive[:, t]
            outputs.append((state * c[:, t, None, :]).sum(-1))
        return torch.stack(outputs, 1), state


def get_inputs():
    return [torch.randn(2, 6, 4)]


def get_init_inputs():
    return [4, 3]
