"""Memory that referee and workers share, and tensors over it. Standard library only; torch is handed in.

On the host it is a memory file; on a card device memory that the referee allocated and exported, which a worker opens
by the 64 bytes of its handle. Nothing is pickled: a tensor is a place, an extent, a dtype and a shape.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Mapping, Sequence
from typing import Any

from solbench.device.native import Runtime
from solbench.errors import UndecidedError

Slot = Mapping[str, Any]


class HostMemory:
    """A mapped memory file."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        # Present at once, so that no call pays for its pages.
        self._map = mmap.mmap(descriptor, size_bytes, mmap.MAP_SHARED | mmap.MAP_POPULATE)

    def pointer(self) -> int:
        """Address of the first byte, valid while this object lives."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def tensor(self, views: Views, offset: int, nbytes: int) -> Any:
        """uint8 tensor ``(nbytes,)``; it keeps the mapping alive."""
        part = memoryview(self._map)[offset : offset + nbytes]
        return views.frombuffer(part, dtype=views.dtypes["uint8"])


class DeviceMemory:
    """Device memory at ``pointer``, which stays mapped as long as the process runs."""

    def __init__(self, pointer: int, device_type: int, index: int) -> None:
        """``device_type``, ``index``: DLPack's name of the device."""
        self._pointer = pointer
        self._device = (device_type, index)

    def pointer(self) -> int:
        return self._pointer

    def tensor(self, views: Views, offset: int, nbytes: int) -> Any:
        """uint8 tensor ``(nbytes,)``."""
        return views.from_dlpack(_capsule(self._pointer + offset, nbytes, self._device))


Memory = HostMemory | DeviceMemory
_OPEN_WAITS_S = (0.05, 0.2)


class Views:
    """Makes tensors over shared memory. What it needs of torch it takes when it is made, before any candidate."""

    def __init__(self, torch: Any, device: str) -> None:
        """``device``: torch's name of where the memory is."""
        self.device = device
        self.empty, self.frombuffer = torch.empty, torch.frombuffer
        self.from_dlpack = torch.utils.dlpack.from_dlpack
        self.dtypes = {str(value).removeprefix("torch."): value for value in vars(torch).values()
                       if isinstance(value, torch.dtype)}  # fmt: skip

    def view(self, memory: Memory | None, slot: Slot) -> Any:
        """The tensor of one slot: row-major, with a storage of its own extent."""
        dtype, shape = self.dtypes[slot["dtype"]], slot["shape"]
        if slot["nbytes"] == 0:
            return self.empty(shape, dtype=dtype, device=self.device)
        assert memory is not None
        raw = memory.tensor(self, slot["offset"], slot["nbytes"])
        return self.empty(0, dtype=dtype, device=self.device).set_(raw.untyped_storage(), 0, shape, _row_major(shape))


def _row_major(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


# ---- DLPack (dlpack.h, version 0): how a tensor over foreign memory is handed to torch

HOST, CUDA, ROCM = 1, 2, 10
DEVICE_TYPES = {"cuda": CUDA, "rocm": ROCM}
_UINT = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_NAME = b"dltensor"
# A tensor reads its description as long as it lives, and nobody says when that ends: kept, some hundred bytes each.
_kept: list[Any] = []


def _capsule(pointer: int, nbytes: int, device: tuple[int, int]) -> Any:
    """A DLPack capsule of ``nbytes`` bytes at ``pointer`` that owns nothing."""
    extent = (ctypes.c_int64 * 1)(nbytes)
    stride = (ctypes.c_int64 * 1)(1)
    tensor = _Tensor(pointer, *device, 1, _UINT, 8, 1, extent, stride, 0)
    managed = _Managed(tensor, None, None)
    _kept.append((managed, extent, stride))
    return _new_capsule(ctypes.addressof(managed), _NAME, None)


def open_device_memory(
    runtime: Runtime, handle: str, opened: dict[str, int], device_type: int, index: int
) -> DeviceMemory:
    """Memory that another process exported as ``handle`` (hexadecimal); ``opened`` remembers what is mapped already."""
    if handle not in opened:
        opened[handle] = _open(runtime, bytes.fromhex(handle))
    return DeviceMemory(opened[handle], device_type, index)


def _open(runtime: Runtime, exported: bytes) -> int:
    """Opening says "invalid device context" now and then (once in some ninety on CUDA 13, driver 580), where another
    process that had the memory open is just being ended: tried again, and the last refusal stands."""
    for wait_s in _OPEN_WAITS_S:
        try:
            return runtime.open(exported)
        except UndecidedError:
            time.sleep(wait_s)
    try:
        return runtime.open(exported)
    except UndecidedError as error:
        raise UndecidedError(f"{error}: device memory is not shared with this process; try --transport host") from None
