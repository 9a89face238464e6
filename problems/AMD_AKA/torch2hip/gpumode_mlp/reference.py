import torch.nn.functional as F


def run(
    xb,
    linear1_weight,
    linear1_bias,
    linear2_weight,
    linear2_bias,
    linear3_weight,
    linear3_bias,
    linear4_weight,
    linear4_bias,
    linear5_weight,
    linear5_bias,
    linear6_weight,
    linear6_bias,
    linear7_weight,
    linear7_bias,
):
    # ReLU behind every layer but the last.
    hidden = F.relu(F.linear(xb, linear1_weight, linear1_bias))
    hidden = F.relu(F.linear(hidden, linear2_weight, linear2_bias))
    hidden = F.relu(F.linear(hidden, linear3_weight, linear3_bias))
    hidden = F.relu(F.linear(hidden, linear4_weight, linear4_bias))
    hidden = F.relu(F.linear(hidden, linear5_weight, linear5_bias))
    hidden = F.relu(F.linear(hidden, linear6_weight, linear6_bias))
    return F.linear(hidden, linear7_weight, linear7_bias)
