# attack M12: one number, spread over the whole output by a stride of 0
# expect: INCORRECT_SHAPE
# reason: strides
import torch


def run(x, scale):
    return torch.ones(1).expand(x.shape)
