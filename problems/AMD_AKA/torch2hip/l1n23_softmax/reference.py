import torch


def run(x):
    # The row maximum is subtracted first, so that no exponential overflows.
    exponential = torch.exp(x - x.amax(dim=1, keepdim=True))
    return exponential / exponential.sum(dim=1, keepdim=True)
