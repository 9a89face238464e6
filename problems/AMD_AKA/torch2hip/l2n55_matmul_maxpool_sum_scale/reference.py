import torch.nn.functional as F


def run(x, weight, bias, kernel_size, scale_factor):
    # The maximum of each window of features, an incomplete last window dropped, then their sum a row.
    linear = F.linear(x, weight, bias)
    pooled = F.max_pool1d(linear.unsqueeze(1), kernel_size).squeeze(1)
    return pooled.sum(dim=1) * scale_factor
