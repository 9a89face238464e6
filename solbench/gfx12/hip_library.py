"""The host's part of a HIP candidate as a library that launches into the emulator.

The compiler that makes the device code makes the host's part too, for the processor that is here, and links it to the
runtime below instead of ROCm's: launches, memory and errors, as far as kernels need them. A function that is not there
is a fault of linking that names it.
"""

from __future__ import annotations

from collections.abc import Sequence

from solbench.code.hip import compiled
from solbench.code.plain_file import open_plain
from solbench.evaluate.build import BuildFailure
from solbench.model.solution import Solution
from solbench.model.trace import Status

MAX_LIBRARY_BYTES = 64 << 20
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
