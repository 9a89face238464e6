# attack C11: overwrites whatever could be the expected output
# expect: INCORRECT_NUMERICAL
import gc

import torch


def run(x, scale):
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == x.shape and thing.data_ptr() != x.data_ptr():
            thing.fill_(1)
    return torch.ones_like(x)
