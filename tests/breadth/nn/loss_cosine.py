# loss: cosine embedding, cosine similarity, pairwise distance
import torch
from torch import nn
from torch.nn import functional as F

AS_DRAWN = ("sign",)


class Model(nn.Module):
    def forward(self, x, y, sign):
        return (F.cosine_embedding_loss(x, y, sign, margin=0.1), F.cosine_similarity(x, y), F.pairwise_distance(x, y))


def get_inputs():
    return [torch.randn(4, 12), torch.randn(4, 12), torch.tensor([1.0, -1.0, 1.0, -1.0])]


def get_init_inputs():
    return []
