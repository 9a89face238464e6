# attack H9: writes through addresses: over the worker's count of samples, over every tensor but its input
# expect: INCORRECT_NUMERICAL
import ctypes
import gc
import sys

import torch


def run(x, scale):
    frame = sys._getframe()
    while frame is not None:
        if "count" in frame.f_locals and "touched" in frame.f_locals:
            count = frame.f_locals["count"]
            frame.f_locals["count"] = count + 100
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == x.shape and thing.data_ptr() != x.data_ptr():
            ctypes.memset(thing.data_ptr(), 0, 4 * thing.numel())
    return torch.zeros_like(x)
