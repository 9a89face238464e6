import torch


def run(A, B):
    # bf16 products are exact in fp32; the sum runs in fp32 over all of K and is rounded once.
    return torch.bmm(A.float(), B.float()).bfloat16()
