import torch

THETA = 10000.0
CONTEXT = 1048576


def run(x, cos, sin):
    kept = x.shape[-1] - 2 * cos.shape[-1]
    pairs = x[..., kept:].float().unflatten(-1, (-1, 2))
    first, second = pairs[..., 0], pairs[..., 1]
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    rotated = torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return torch.cat((x[..., :kept], rotated.flatten(-2).bfloat16()), dim=-1)


def custom_inputs(axes, device):
    # fp32 cannot hold an angle of 10^6 rad to better than 0.06 rad: the table is formed in fp64.
    tokens, half = axes["S"], axes["RH"]
    base = torch.randint(0, CONTEXT - tokens + 1, (axes["B"], 1))
    position = (base + torch.arange(tokens)).double()
    frequency = THETA ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = position.unsqueeze(2) * frequency
    return {"cos": angle.cos().float(), "sin": angle.sin().float()}
