# pooling: power mean of volumes, unpooling of sequences and volumes, fractional of volumes
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("u",)


class Model(nn.Module):
    def forward(self, x, z, u):
        line, places = F.max_pool1d(x, 2, return_indices=True)
        pooled, where = F.max_pool3d(z, 2, return_indices=True)
        third = torch.ops.aten.fractional_max_pool3d(z, [2, 2, 2], [2, 3, 2], u)
        return F.max_unpool1d(line, places, 2), F.max_unpool3d(pooled, where, 2), F.lp_pool3d(z, 2, 2), third


def get_inputs():
    return [torch.randn(2, 4, 10), torch.randn(1, 2, 4, 6, 4), torch.rand(1, 2, 3)]


def get_init_inputs():
    return []
