import torch


def run(a, b):
    # b + b is exact, so the doubling may also be moved behind the product.
    return torch.matmul(a, b + b)
