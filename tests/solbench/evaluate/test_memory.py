"""Tensors over shared memory, and opening what another process exported."""

from __future__ import annotations

import ctypes
import gc
import os
from typing import Any

import pytest
import torch

from solbench.errors import UndecidedError
from solbench.evaluate import arena, memory
from solbench.evaluate.memory import HOST, DeviceMemory, HostMemory, Views, open_device_memory

SLOT = {"dtype": "float32", "shape": [2, 3], "nbytes": 24, "offset": 8}


def test_a_tensor_over_foreign_memory() -> None:
    """Through DLPack, as on a card; here the memory is a buffer of ours."""
    buffer = ctypes.create_string_buffer(64)
    tensor = Views(torch, "cpu").view(DeviceMemory(ctypes.addressof(buffer), HOST, 0), SLOT)
    assert (tensor.shape, tensor.dtype, tensor.stride()) == ((2, 3), torch.float32, (3, 1))
    assert tensor.untyped_storage().nbytes() == 24, "a storage of its own extent, not of the whole memory"
    tensor.fill_(1.5)
    assert bytes(buffer)[8:32] == b"\x00\x00\xc0\x3f" * 6 and not any(bytes(buffer)[:8] + bytes(buffer)[32:])
    del tensor
    gc.collect()  # nothing is freed with it


def test_a_tensor_keeps_a_memory_file_mapped() -> None:
    handle = arena.create(4096)
    held = HostMemory(handle, 4096)
    os.close(handle)
    tensor = Views(torch, "cpu").view(held, SLOT)
    del held
    gc.collect()
    tensor.copy_(torch.arange(6).reshape(2, 3))
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_tensor_without_elements_needs_no_memory() -> None:
    empty = Views(torch, "cpu").view(None, {"dtype": "int8", "shape": [0, 4], "nbytes": 0, "offset": 0})
    assert empty.shape == (0, 4) and empty.dtype is torch.int8


class Refusing:
    """A runtime that refuses to open memory so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def open(self, exported: bytes) -> int:
        self.left -= 1
        if self.left >= 0:
            raise UndecidedError("cudaIpcOpenMemHandle: invalid device context (201)")
        return 4096


@pytest.mark.parametrize("times", [0, 1, 2])
def test_opening_is_tried_again(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_OPEN_WAITS_S", (0.0, 0.0))
    opened: dict[str, int] = {}
    runtime: Any = Refusing(times)
    assert open_device_memory(runtime, "ab" * 64, opened, HOST, 0).pointer() == 4096
    assert open_device_memory(runtime, "ab" * 64, opened, HOST, 0).pointer() == 4096 and opened == {"ab" * 64: 4096}


def test_a_card_that_does_not_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_OPEN_WAITS_S", (0.0, 0.0))
    runtime: Any = Refusing(99)
    with pytest.raises(UndecidedError, match=r"\(201\): device memory is not shared .* try --transport host"):
        open_device_memory(runtime, "ab" * 64, {}, HOST, 0)
