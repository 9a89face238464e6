import torch


def run(A, B):
    # output[m, n] = sum over k of A[m, k] * B[k, n], fp32 operands and accumulation
    return torch.matmul(A, B)
