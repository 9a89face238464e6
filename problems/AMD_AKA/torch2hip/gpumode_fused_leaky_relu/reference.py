import torch.nn.functional as F


def run(x, bias, negative_slope, scale):
    # One bias a channel.
    return F.leaky_relu(x + bias.view(1, -1, 1, 1), negative_slope) * scale
