import torch


def run(x):
    # Nearest OCP e4m3fn value, ties to the even code. Inputs stay within +-448, so nothing saturates.
    return x.to(torch.float8_e4m3fn)
