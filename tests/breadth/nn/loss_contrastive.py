# loss: contrastive over a batch (InfoNCE)
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x, y):
        logits = F.normalize(x, dim=1) @ F.normalize(y, dim=1).t() / 0.07
        target = torch.arange(x.shape[0], device=x.device)
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def get_inputs():
    return [torch.randn(4, 12), torch.randn(4, 12)]


def get_init_inputs():
    return []
