"""Tensors of host code in the emulated card's memory: each storage once, under one address while host code runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from solbench.errors import InputError
from solbench.gfx12.arena import Arena


@dataclass(frozen=True)
class _Held:
    """A storage: its name, and where it lies for the host and for the card, in bytes. ``owner`` keeps the host's memory
    alive, so that no other storage takes its place."""

    name: str
    host: int
    size: int
    device: int
    data: np.ndarray[Any, np.dtype[np.uint8]]
    owner: Any


class Storages:
    """Storages by their host address. Views, slices and aliases of one storage share its bytes on the card as well."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._held: dict[tuple[int, int], _Held] = {}
        # By host address; the values keep the memory from being used for something else.
        self._protected: dict[int, Any] = {}
        self._unwritten: dict[int, Any] = {}

    def protect(self, tensor: torch.Tensor) -> None:
        """A kernel that writes to this tensor's storage does what it must not."""
        self._protected[tensor.untyped_storage().data_ptr()] = tensor

    def unwritten(self, tensor: torch.Tensor) -> None:
        """Nothing wrote the values of this tensor yet: it is new memory."""
        self._unwritten[tensor.untyped_storage().data_ptr()] = tensor

    def written(self, tensor: torch.Tensor) -> None:
        """Host code wrote to this tensor: all of its storage counts as written."""
        self._unwritten.pop(tensor.untyped_storage().data_ptr(), None)

    def address(self, tensor: torch.Tensor, name: str) -> int:
        """Device address of a tensor's first element; 0 of a tensor without elements. ``name``: for findings."""
        if tensor.device.type != "cpu":
            raise InputError(name, f"a tensor on {tensor.device}; the emulated card reads tensors in the host's memory")
        storage = tensor.untyped_storage()
        if not storage.nbytes() or not tensor.numel():
            return 0
        key = (storage.data_ptr(), storage.nbytes())
        held = self._held.get(key)
        # A view of bytes on the whole storage, whatever the tensor's own dtype and offset are.
        with torch._C.DisableTorchFunction():  # it is not host code that looks at the bytes
            data = held.data if held else torch.empty(0, dtype=torch.uint8).set_(storage).numpy()  # type: ignore[call-overload]
        return self._place(*key, data, storage, name) + tensor.storage_offset() * tensor.element_size()

    def allocate(self, size: int, name: str) -> int:
        """Host address of ``size`` new bytes, for host code that asks the runtime for memory."""
        data: Any = np.zeros(size, np.uint8)
        host = int(data.ctypes.data)
        self._unwritten[host] = data
        self._place(host, size, data, data, name)
        return host

    def of_pointer(self, host: int) -> int | None:
        """Device address for a pointer of the host's into a storage that is known, or else to the end of one; None for
        any other."""
        ends = None
        for held in self._held.values():
            if held.host <= host < held.host + held.size:
                return held.device + host - held.host
            if host == held.host + held.size:
                ends = held.device + held.size
        return ends

    def written_at(self, host: int) -> None:
        """Host code wrote to memory of :meth:`allocate` from here on: all of it counts as written."""
        for held in self._held.values():
            if held.host <= host < held.host + held.size and self._unwritten.pop(held.host, None) is not None:
                self._place(held.host, held.size, held.data, held.owner, held.name)
                return

    def release(self, host: int) -> None:
        """Forget memory of :meth:`allocate`: a pointer to it leads nowhere from now on."""
        self._held = {key: held for key, held in self._held.items() if key[0] != host}

    def _place(self, host: int, size: int, data: np.ndarray[Any, np.dtype[np.uint8]], owner: Any, name: str) -> int:
        device = self.arena.add(name, data, read_only=host in self._protected, initialised=host not in self._unwritten)
        self._held[host, size] = _Held(name, host, size, device, data, owner)
        return device
