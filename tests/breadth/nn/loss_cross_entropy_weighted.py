# loss: cross entropy with class weights
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("weight",)


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("weight", torch.rand(classes) + 0.5)

    def forward(self, x, target):
        smooth = F.cross_entropy(x, target, self.weight, label_smoothing=0.2)
        return F.cross_entropy(x, target, self.weight), smooth


def get_inputs():
    return [torch.randn(6, 5), torch.randint(0, 5, (6,))]


def get_init_inputs():
    return [5]
