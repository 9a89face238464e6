import torch.nn.functional as F


def run(x, weight, bias):
    # One 3x3 filter a channel, stride 1, no padding.
    return F.conv2d(x, weight, bias, groups=x.shape[1])
