# loss: binary cross entropy, of logits and of probabilities
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("y",)


class Model(nn.Module):
    def forward(self, x, y):
        return (
            F.binary_cross_entropy_with_logits(x, y),
            F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor(2.0)),
            F.binary_cross_entropy(torch.sigmoid(x), y),
        )


def get_inputs():
    return [torch.randn(4, 12), torch.rand(4, 12)]


def get_init_inputs():
    return []
