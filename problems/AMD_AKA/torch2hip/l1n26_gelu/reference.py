import math

import torch


def run(x):
    # The erf form, evaluated in fp32 from the fp16 input and rounded once.
    value = x.float()
    return (0.5 * value * (1.0 + torch.erf(value / math.sqrt(2.0)))).half()
