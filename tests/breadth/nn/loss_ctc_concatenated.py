# loss: connectionist temporal classification, targets in a row, repeated labels, an empty and an impossible target
import torch
from torch import nn
from torch.nn import functional as F

KNOWN = ("lengths", "target_lengths")


class Model(nn.Module):
    def forward(self, x, targets, lengths, target_lengths):
        x = F.log_softmax(x, 2)
        return F.ctc_loss(x, targets, lengths, target_lengths, blank=1, reduction="none"), F.ctc_loss(
            x, targets, (6, 5, 6, 2), (3, 2, 0, 3), blank=1, zero_infinity=True
        )


def get_inputs():
    targets = torch.tensor([2, 2, 3, 0, 3, 2, 3, 3])
    return [torch.randn(6, 4, 4), targets, torch.tensor([6, 5, 6, 2]), torch.tensor([3, 2, 0, 3])]


def get_init_inputs():
    return []
