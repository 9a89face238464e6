import torch.nn.functional as F


def run(x, weight, bias):
    # Cross-correlation, stride 1, no padding: NCHW input, OIHW weight.
    return F.conv2d(x, weight, bias)
