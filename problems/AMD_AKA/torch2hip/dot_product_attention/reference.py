import torch
import torch.nn.functional as F


def run(
    x,
    query_weight,
    query_bias,
    key_weight,
    key_bias,
    value_weight,
    value_bias,
    gamma_weight,
    gamma_bias,
):
    # Projections by 1x1 convolutions; pixels p = h * W + w become the sequence.
    query = F.conv2d(x, query_weight, query_bias).flatten(2)
    key = F.conv2d(x, key_weight, key_bias).flatten(2)
    value = F.conv2d(x, value_weight, value_bias).flatten(2)

    # energy[b, i, j] = elu(sum_r query[b, r, i] * key[b, r, j]) / pixels: no softmax.
    pixels = x.shape[2] * x.shape[3]
    energy = F.elu(torch.matmul(query.transpose(1, 2), key)) / pixels

    # The sum runs over the query pixel i; the result sits at the key pixel j.
    mixed = torch.matmul(value, energy).view(x.shape)
    return F.conv2d(mixed, gamma_weight, gamma_bias)
