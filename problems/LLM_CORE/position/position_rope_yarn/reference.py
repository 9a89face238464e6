import math

import torch

THETA = 1e9
FACTOR = 16
ORIGINAL_CONTEXT = 16384
CONTEXT = 262144
FAST, SLOW = 32, 1
QUERY_BETA = 0.1


def run(q, k, position_ids, inv_freq):
    channels = q.shape[-1]
    low = max(math.floor(turning_channel(FAST, channels)), 0)
    high = min(math.ceil(turning_channel(SLOW, channels)), channels - 1)
    channel = torch.arange(channels // 2, dtype=torch.float32, device=q.device)
    ramp = ((channel - low) / (high - low if high > low else 0.001)).clamp(0, 1)
    frequency = inv_freq / FACTOR * ramp + inv_freq * (1 - ramp)

    position = position_ids.float()
    angle = (position.unsqueeze(-1) * frequency).unsqueeze(2)
    cos, sin = torch.cos(angle), torch.sin(angle)
    # The two attention factors of YaRN are equal here and cancel.
    scale = 1 + QUERY_BETA * torch.log(1 + torch.floor(position / ORIGINAL_CONTEXT))
    q_out = rotated(q, cos, sin) * scale.unsqueeze(-1).unsqueeze(-1)
    return q_out.bfloat16(), rotated(k, cos, sin).bfloat16()


def turning_channel(turns, channels):
    """The channel pair whose angle makes so many turns over the original context."""
    return channels * math.log(ORIGINAL_CONTEXT / (turns * 2 * math.pi)) / (2 * math.log(THETA))


def rotated(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def custom_inputs(axes, device):
    # One unit in the last place of a frequency moves the angle at the end of the context by 0.016 rad.
    half = axes["DH"]
    base = torch.randint(0, CONTEXT - axes["S"] + 1, (axes["B"], 1))
    frequency = THETA ** (-torch.arange(half, dtype=torch.float64) / half)
    return {"position_ids": (base + torch.arange(axes["S"])).int(), "inv_freq": frequency.float()}
