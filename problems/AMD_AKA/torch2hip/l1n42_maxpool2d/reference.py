import torch.nn.functional as F


def run(x):
    # Windows of 2x2 with stride 2; an odd last row or column is dropped.
    return F.max_pool2d(x, kernel_size=2, stride=2)
