# loss: margins of many classes and of many labels
import torch
from torch import nn
from torch.nn import functional as F

KNOWN = ("labels",)


class Model(nn.Module):
    def forward(self, x, target, labels):
        return (
            F.multi_margin_loss(x, target, margin=0.5),
            F.multi_margin_loss(x, target, p=2, reduction="none"),
            F.multilabel_margin_loss(x, labels),
            F.multilabel_soft_margin_loss(x, (labels > 0).float()),
        )


def get_inputs():
    return [torch.randn(6, 5), torch.randint(0, 5, (6,)), torch.tensor([[3, 0, -1, 1, 2]] * 6)]


def get_init_inputs():
    return []
