# loss: margin ranking, hinge embedding, soft margin
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("sign",)


class Model(nn.Module):
    def forward(self, x, y, sign):
        return (
            F.margin_ranking_loss(x, y, sign, margin=0.2),
            F.hinge_embedding_loss(x, sign),
            F.soft_margin_loss(x, sign),
        )


def get_inputs():
    return [torch.randn(12), torch.randn(12), torch.randn(12).sign()]


def get_init_inputs():
    return []
