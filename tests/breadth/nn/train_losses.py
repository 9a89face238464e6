# training step: gradients of the losses
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("y",)


class Model(nn.Module):
    def forward(self, x, y, target):
        x = x.detach().requires_grad_()
        p = torch.sigmoid(x)
        total = F.binary_cross_entropy(p, y) + F.binary_cross_entropy_with_logits(x, y) + F.huber_loss(x, y)
        total = total + F.smooth_l1_loss(x, y, beta=0.3) + F.kl_div(F.log_softmax(x, 1), y, reduction="batchmean")
        total = total + F.cosine_embedding_loss(x, y, torch.ones(4, device=x.device)) + F.l1_loss(x, y)
        total = total + F.cross_entropy(x, target, label_smoothing=0.1, ignore_index=3) + F.multi_margin_loss(x, target)
        total = total + F.triplet_margin_loss(x, y, p) + F.soft_margin_loss(x, y) + F.poisson_nll_loss(x, y)
        return torch.autograd.grad(total, x)[0]


def get_inputs():
    return [torch.randn(4, 12), torch.rand(4, 12), torch.randint(0, 12, (4,))]


def get_init_inputs():
    return []
