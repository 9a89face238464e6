import torch.nn.functional as F


def run(predictions, targets):
    # Mean over rows of log-sum-exp(row) - row[target]; a 0-d result.
    return F.cross_entropy(predictions, targets)
