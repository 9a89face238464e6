# block: pre-norm attention with rotary positions and a gated perceptron, bf16
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        kind = {"bias": False, "dtype": torch.bfloat16}
        self.qkv, self.out = nn.Linear(width, 3 * width, **kind), nn.Linear(width, width, **kind)
        self.gate, self.up = nn.Linear(width, 16, **kind), nn.Linear(width, 16, **kind)
        self.down = nn.Linear(16, width, **kind)
        self.first = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))
        self.second = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def rotated(self, x):
        half = x.shape[-1] // 2
        position = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)
        rate = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angle = position[:, None] * rate
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).to(x.dtype)

    def forward(self, x):
        b, n, width = x.shape
        hidden = F.rms_norm(x, (width,), self.first, 1e-5)
        q, k, v = (p.view(b, n, self.heads, -1).transpose(1, 2) for p in self.qkv(hidden).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, width))
        hidden = F.rms_norm(x, (width,), self.second, 1e-5)
        return x + self.down(F.silu(self.gate(hidden)) * self.up(hidden))


def get_inputs():
    return [torch.randn(2, 5, 8, dtype=torch.bfloat16)]


def get_init_inputs():
    return [8, 2]
