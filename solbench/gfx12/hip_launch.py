"""HIP candidates on the emulated card: their own host code, with a runtime of ours behind it.

The compiler that makes the device code makes the host's part too, for the processor that is here, and links it to the
runtime below instead of ROCm's: launches, memory and errors, as far as kernels need them. A function that is not there
is a fault of linking that names it. Host code is a candidate's: load it only in a process that is confined.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solbench.code import kernels
from solbench.code.hip import HipCode, compiled
from solbench.code.plain_file import open_plain
from solbench.errors import InputError, SolbenchError, UnsupportedError
from solbench.evaluate.build import BuildFailure
from solbench.gfx12.launch import Launch
from solbench.gfx12.launches import Launches
from solbench.gfx12.program import Program, load
from solbench.gfx12.run import Options
from solbench.model.solution import Solution
from solbench.model.trace import Status

MAX_LIBRARY_BYTES = 64 << 20
# hipErrorInvalidValue, hipErrorOutOfMemory, hipErrorLaunchFailure of hip_runtime_api.h.
_INVALID, _NO_MEMORY, _FAILED = 1, 2, 719
_RUNTIME = r"""
#include <cstddef>
#include <cstring>
struct Size { unsigned x, y, z; };
typedef int (*Launcher)(const char*, const unsigned*, const unsigned*, void**, size_t);
typedef void* (*Allocator)(size_t);
typedef void (*Told)(void*);
namespace {
enum { MOST = 4096 };
struct { const void* stub; const char* name; } known[MOST];
int count, last;
Size grid_now, block_now;
size_t lds_now;
void* stream_now;
Launcher launcher;
Allocator allocator;
Told releaser, writer;
int noted(int error) { if (error) last = error; return error; }
}
extern "C" {
__attribute__((visibility("hidden"))) char __hip_fatbin[8];
void solbench_bind(Launcher l, Allocator a, Told r, Told w) { launcher = l; allocator = a; releaser = r; writer = w; }
void** __hipRegisterFatBinary(const void*) { static void* handle; return &handle; }
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterVar(void**, void*, char*, const char*, int, size_t, int, int) {}
void __hipRegisterFunction(void**, const void* stub, char*, const char* name, unsigned, void*, void*, void*, void*,
                           int*) {
  if (count < MOST) known[count++] = {stub, name};
}
int __hipPushCallConfiguration(Size grid, Size block, size_t lds, void* stream) {
  grid_now = grid; block_now = block; lds_now = lds; stream_now = stream;
  return 0;
}
int __hipPopCallConfiguration(Size* grid, Size* block, size_t* lds, void** stream) {
  *grid = grid_now; *block = block_now; *lds = lds_now; *stream = stream_now;
  return 0;
}
int hipLaunchKernel(const void* stub, Size grid, Size block, void** arguments, size_t lds, void*) {
  const unsigned g[3] = {grid.x, grid.y, grid.z}, b[3] = {block.x, block.y, block.z};
  for (int i = 0; i < count; i++)
    if (known[i].stub == stub) return noted(launcher(known[i].name, g, b, arguments, lds));
  return noted(98);  // hipErrorInvalidDeviceFunction
}
int hipGetLastError() { int error = last; last = 0; return error; }
int hipPeekAtLastError() { return last; }
const char* hipGetErrorString(int error) { return error ? "error" : "no error"; }
const char* hipGetErrorName(int error) { return error ? "hipErrorUnknown" : "hipSuccess"; }
int hipDeviceSynchronize() { return 0; }
int hipStreamSynchronize(void*) { return 0; }
int hipGetDevice(int* device) { *device = 0; return 0; }
int hipGetDeviceCount(int* devices) { *devices = 1; return 0; }
int hipSetDevice(int device) { return device ? noted(101) : 0; }
int hipMalloc(void** to, size_t size) { *to = allocator(size); return *to ? 0 : noted(2); }
int hipFree(void* from) { releaser(from); return 0; }
int hipMemset(void* to, int value, size_t size) { memset(to, value, size); writer(to); return 0; }
int hipMemsetAsync(void* to, int value, size_t size, void*) { return hipMemset(to, value, size); }
int hipMemcpy(void* to, const void* from, size_t size, int) { memmove(to, from, size); writer(to); return 0; }
int hipMemcpyAsync(void* to, const void* from, size_t size, int kind, void*) { return hipMemcpy(to, from, size, kind); }
}
"""
_LAUNCHER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t,
)  # fmt: skip
_ALLOCATOR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
_TOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def host_library(solution: Solution, arch: str, timeout_s: float) -> bytes:
    """The host's part of a ``hip_cpp`` solution as a shared library over the runtime above.

    Failures as of :func:`solbench.code.hip.compile_hip`; one of linking names what the runtime does not have.
    """

    def commands(flags: Sequence[str], units: Sequence[str]) -> list[list[str]]:
        host = [*flags, "--offload-host-only", "-fuse-cuid=none", "-fPIC", "-fno-crash-diagnostics"]
        every = [[*host, "-c", "-o", f"../{number}.o", unit] for number, unit in enumerate(units)]
        every.append(["-std=c++17", "-O1", "-fPIC", "-c", "-o", "../runtime.o", "../runtime.cpp"])
        objects = [f"../{number}.o" for number in range(len(units))]
        return [*every, ["-shared", "-Wl,-z,defs", "-o", "../host.so", *objects, "../runtime.o"]]

    with (
        compiled(solution, arch, timeout_s, commands, files={"runtime.cpp": _RUNTIME}) as place,
        open_plain(place / "host.so") as file,
    ):
        library = file.read(MAX_LIBRARY_BYTES + 1)
    if len(library) > MAX_LIBRARY_BYTES:
        raise BuildFailure(Status.COMPILE_ERROR, f"host.so: the library is larger than {MAX_LIBRARY_BYTES} bytes")
    return library


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
        data: Any = np.zeros(max((place.offset + place.size for place in explicit), default=0), np.uint8)
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
