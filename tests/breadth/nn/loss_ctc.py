# loss: connectionist temporal classification
import torch
from torch import nn
from torch.nn import functional as F

KNOWN = ("lengths", "target_lengths")


class Model(nn.Module):
    def forward(self, x, targets, lengths, target_lengths):
        return F.ctc_loss(F.log_softmax(x, 2), targets, lengths, target_lengths)


def get_inputs():
    return [torch.randn(8, 2, 5), torch.randint(1, 5, (2, 3)), torch.tensor([8, 6]), torch.tensor([3, 2])]


def get_init_inputs():
    return []
