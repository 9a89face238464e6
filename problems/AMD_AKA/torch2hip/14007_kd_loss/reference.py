import torch.nn.functional as F


def run(input, target, temperature):
    # temperature^2 / N * sum of target * (log target - log_softmax(input / temperature)); the softmax runs over the
    # channels, and a term whose target is 0 counts 0.
    log_prediction = F.log_softmax(input / temperature, dim=1)
    divergence = F.kl_div(log_prediction, target, reduction="batchmean")
    return divergence * (temperature * temperature)
