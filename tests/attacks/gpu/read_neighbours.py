# attack C12: searches the whole allocation that the shared memory is in for the numbers that are expected
# expect: RUNTIME_ERROR
# reason: nothing was found
import ctypes

import torch


class _Memory:
    def __init__(self, address, bytes_):
        self.__cuda_array_interface__ = {
            "shape": (bytes_ // 4,), "typestr": "<f4", "data": (address, False), "version": 3,
        }  # fmt: skip


def _allocation(address):
    """Where the allocation starts, and its bytes, as the driver knows them."""
    start, size = ctypes.c_uint64(), ctypes.c_size_t()
    for name, function in (("libcuda.so.1", "cuMemGetAddressRange_v2"), ("libamdhip64.so", "hipMemGetAddressRange")):
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        if getattr(driver, function)(ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address)) == 0:
            return start.value, size.value
    raise OSError("no driver")


def run(x, scale):
    expected = x[:4] * scale + 1
    start, size = _allocation(x.data_ptr())
    memory = torch.as_tensor(_Memory(start, size), device="cuda")
    for place in (memory[: size // 4 - 4] == expected[0]).nonzero().flatten().tolist():
        if torch.equal(memory[place : place + 4], expected) and place + x.numel() <= memory.numel():
            return memory[place : place + x.numel()].clone()
    raise RuntimeError("nothing was found")
