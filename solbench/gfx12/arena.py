"""Memory that a launch can reach: storages at addresses that tell them apart.

A storage starts at an address whose upper word is odd and its own, and whose lower word is 0: the upper word of any
address within 4 GiB after it names the storage, and the lower word is the byte within it. So an access is checked
against the exact bytes of the tensor it was computed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from solbench.errors import UnsupportedError
from solbench.gfx12.integers import Array

MAX_BYTES: Final = 1 << 32
# Addresses have 48 bits.
MAX_STORAGES: Final = 1 << 14


@dataclass
class Storage:
    """One storage; ``data`` is written in place. ``high``: upper word of its address.

    ``written``: bytes that were written, None for all of them.
    """

    name: str
    data: Array
    high: int
    read_only: bool
    written: Array = None
    space: str = "global"

    def __post_init__(self) -> None:
        self.size = self.data.nbytes
        self.by_size = {
            size: self.data[: self.size // size * size].view(kind)
            for size, kind in ((1, np.uint8), (2, np.uint16), (4, np.uint32), (8, np.uint64), (16, np.complex128))
        }

    @property
    def address(self) -> int:
        """Where it starts on the device."""
        return self.high << 32


class Arena:
    """Storages by address. It serves runs one after another: each sees the bytes that ``data`` holds then."""

    def __init__(self) -> None:
        self._by_high: dict[int, Storage] = {}
        self._known: dict[tuple[int, int], Storage] = {}
        self._places: dict[str, Storage] = {}

    def add(self, name: str, data: Array, read_only: bool = False, initialised: bool = True) -> int:
        """Make ``data`` (uint8, contiguous) known and return its address, a multiple of 4 GiB.

        The same memory again takes the new name and keeps its address. ``initialised``: whether all of it was
        written; of memory that is known, False changes nothing. :class:`UnsupportedError` for a storage of more than
        4 GiB, or too many of them.
        """
        if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
            raise ValueError(f"{name}: an arena takes contiguous uint8 in one dimension")
        key = (data.ctypes.data, data.nbytes)
        known = self._known.get(key)
        if known is not None and data.nbytes:
            known.name, known.read_only = name, read_only
            if initialised:
                known.written = None
            return known.address
        if data.nbytes > MAX_BYTES:
            raise UnsupportedError(f"{name}: {data.nbytes} bytes, more than the {MAX_BYTES} of one storage here")
        written = None if initialised else np.zeros(data.nbytes, bool)
        storage = Storage(name, data, self._new_high(name), read_only, written)
        self._by_high[storage.high] = storage
        self._known[key] = storage
        return storage.address

    def _new_high(self, name: str) -> int:
        if len(self._by_high) >= MAX_STORAGES:
            raise UnsupportedError(f"{name}: more than {MAX_STORAGES} storages")
        return 2 * len(self._by_high) + 1

    def transient(self, name: str, data: Array) -> int:
        """Put ``data`` of one launch into a place of that name, which the next launch takes over."""
        known = self._places.get(name)
        storage = Storage(name, data, known.high if known else self._new_high(name), True)
        self._places[name] = self._by_high[storage.high] = storage
        return storage.address

    def image(self, digest: str, data: Array, read_only: bool) -> Storage:
        """The loaded code object of that digest; what is there already stays as earlier launches left it."""
        if digest not in self._places:
            storage = Storage("the code object", data, self._new_high("code object"), read_only)
            self._places[digest] = self._by_high[storage.high] = storage
        return self._places[digest]

    def at(self, high: int) -> Storage | None:
        """The storage that addresses with this upper word belong to."""
        return self._by_high.get(high)

    def __iter__(self) -> Iterator[Storage]:
        return iter(self._by_high.values())
