import torch.nn.functional as F


def run(x, conv_weight, conv_bias, divide_by):
    # Each (image, channel) plane is normalised by its own mean and biased variance; no gain, no shift.
    return F.instance_norm(F.conv2d(x, conv_weight, conv_bias), eps=1e-5) / divide_by
