# loss: Dice and focal, by hand
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("target",)


class Model(nn.Module):
    def forward(self, x, target):
        p = torch.sigmoid(x)
        dice = 1 - (2 * (p * target).sum((1, 2)) + 1) / (p.sum((1, 2)) + target.sum((1, 2)) + 1)
        entropy = F.binary_cross_entropy_with_logits(x, target, reduction="none")
        hit = p * target + (1 - p) * (1 - target)
        return dice.mean(), (0.25 * (1 - hit) ** 2 * entropy).mean()


def get_inputs():
    return [torch.randn(2, 6, 5), (torch.rand(2, 6, 5) > 0.5).float()]


def get_init_inputs():
    return []
