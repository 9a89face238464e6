import torch.nn.functional as F


def run(x, conv_weight, conv_bias, bn_weight, bn_bias, bn_mean, bn_var, bn_eps):
    # Mish sits before the normalisation, which uses the stored statistics.
    activated = F.mish(F.conv2d(x, conv_weight, conv_bias))
    return F.batch_norm(activated, bn_mean, bn_var, bn_weight, bn_bias, training=False, eps=bn_eps)
