# honest: says that it wants full precision
import torch

torch.set_float32_matmul_precision("highest")


def run(x, scale):
    torch.backends.cuda.matmul.allow_tf32 = False
    return x * scale + 1
