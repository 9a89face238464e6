import torch


def run(A, B):
    # fp16 products are exact in fp32; the sum runs in fp32 over all of K and is rounded once.
    return torch.matmul(A.float(), B.float()).half()
