"""HIP candidates on the emulated card: their own host code, with a runtime of ours behind it (:mod:`hip_library`).

Host code is a candidate's: load it only in a process that is confined.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solbench.code import kernels
from solbench.code.hip_code import HipCode
from solbench.errors import InputError, SolbenchError, UnsupportedError
from solbench.gfx12.launch import Launch
from solbench.gfx12.launches import Launches
from solbench.gfx12.program import Program, load
from solbench.gfx12.run import Options

# hipErrorInvalidValue, hipErrorOutOfMemory, hipErrorLaunchFailure of hip_runtime_api.h.
_INVALID, _NO_MEMORY, _FAILED = 1, 2, 719
_LAUNCHER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t,
)  # fmt: skip
_ALLOCATOR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
_TOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class HipHost:
    """A candidate's host code, loaded. Kernels that it launches run on the emulated card; see ``launches``."""

    def __init__(self, code: HipCode, library: Path, options: Options | None = None) -> None:
        self.launches = Launches(options or Options())
        self._units = {kernel: unit for unit in code.units for kernel in unit.kernels}
        if len(self._units) != len(code.kernels):
            raise UnsupportedError("kernels of one name in two sources of a solution")
        self._kernels: dict[str, tuple[Program, tuple[kernels.Argument, ...]]] = {}
        self._fault: SolbenchError | None = None
        self._library = ctypes.CDLL(str(library))
        # Kept: the library calls them as long as it is loaded.
        storages = self.launches.storages
        self._calls = (
            _LAUNCHER(self._launch), _ALLOCATOR(self._allocate), _TOLD(storages.release), _TOLD(storages.written_at),
        )  # fmt: skip
        self._library.solbench_bind(*self._calls)

    def call(self, function: str, arguments: Mapping[str, Any]) -> None:
        """Call an ``extern "C"`` function: tensors by their address, numbers as the ctypes value that is given, or as
        int64. The names are for findings. :class:`UnsupportedError`, :class:`solbench.errors.UndecidedError` and
        :class:`InputError` of a launch are raised when the function has ended."""
        values: list[Any] = []
        for name, value in arguments.items():
            if hasattr(value, "untyped_storage"):
                self.launches.storages.address(value, name)
                values.append(ctypes.c_void_p(value.data_ptr()))
            else:
                values.append(ctypes.c_int64(value) if isinstance(value, int) else value)
        entry = getattr(self._library, function)
        entry.restype = None
        entry(*values)
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _launch(self, name: bytes, grid: Any, block: Any, arguments: Any, lds: int) -> int:
        if self._fault is not None:
            return _FAILED  # what came before did not come to its end
        kernel = name.decode("utf-8", "replace")
        groups, threads = (int(grid[0]), int(grid[1]), int(grid[2])), (int(block[0]), int(block[1]), int(block[2]))
        if 0 in groups or 0 in threads:
            return _INVALID
        try:
            program, places = self._loaded(kernel)
            packed = self._packed(places, arguments)
            self.launches.launch(kernel, program, Launch(groups, threads, packed, lds))
        except SolbenchError as fault:
            self._fault = fault
            return _FAILED
        return 0

    def _loaded(self, kernel: str) -> tuple[Program, tuple[kernels.Argument, ...]]:
        """A kernel of the code objects and its arguments, from its first launch on."""
        if kernel not in self._units:
            raise InputError(kernel, "no such kernel in the code objects")
        if kernel not in self._kernels:
            unit = self._units[kernel]
            declared = kernels.read(unit.code, unit.source).kernels[kernel].arguments
            self._kernels[kernel] = (load(unit.code, unit.assembly, kernel, unit.source), declared)
        return self._kernels[kernel]

    def _packed(self, places: Sequence[kernels.Argument], arguments: Any) -> bytes:
        """Explicit arguments at their places. An aligned word that leads into memory of the host's that is known
        becomes the address of the same bytes on the card: pointers, and those in structures."""
        explicit = [place for place in places if not place.kind.startswith("hidden_")]
        data: np.ndarray[Any, np.dtype[np.uint8]] = np.zeros(
            max((place.offset + place.size for place in explicit), default=0), np.uint8
        )
        for number, place in enumerate(explicit):
            value = np.frombuffer(ctypes.string_at(arguments[number], place.size), np.uint8).copy()
            words = value[: place.size // 8 * 8].view(np.uint64)
            for at, word in enumerate(words.tolist()):
                found = self.launches.storages.of_pointer(word) if word else None
                if found is not None:
                    words[at] = found
            data[place.offset : place.offset + place.size] = value
        return data.tobytes()

    def _allocate(self, size: int) -> int:
        return self.launches.storages.allocate(size, "hipMalloc") if size else 0
