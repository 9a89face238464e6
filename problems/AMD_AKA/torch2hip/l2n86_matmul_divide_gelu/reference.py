import torch.nn.functional as F


def run(x, weight, bias, divisor):
    # The bias is divided too; GELU in its erf form.
    return F.gelu(F.linear(x, weight, bias) / divisor)
