# block: transformer decoder layer with a causal mask
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(width, heads, 16, dropout=0.0, batch_first=True)

    def forward(self, x, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(5, device=x.device)
        return self.layer(x, memory, tgt_mask=mask, tgt_is_causal=True)


def get_inputs():
    return [torch.randn(2, 5, 8), torch.randn(2, 6, 8)]


def get_init_inputs():
    return [8, 2]
