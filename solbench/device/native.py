"""Device events, copies and shared memory through ctypes: the HIP and the CUDA runtime by one table of symbols.

HIP's runtime has the names and signatures of CUDA's with another prefix, checked against hip_runtime_api.h and
cuda_runtime_api.h. Bind before a candidate loads: every function is taken from the library by its absolute path, so
nothing that is loaded or replaced later is called instead.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

from solbench.errors import UndecidedError, UnsupportedError

HANDLE_BYTES = 64
_PREFIX = {"rocm": "hip", "cuda": "cuda"}
_NAMES = {"rocm": ("libamdhip64.so",), "cuda": ("libcudart.so.13", "libcudart.so.12")}
_MEMCPY_DEFAULT = 4
_IPC_LAZY_PEER_ACCESS = 1
_CUDA_L2_CACHE_SIZE = 38  # cudaDevAttrL2CacheSize


class _MemHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


_SYMBOLS: dict[str, tuple[Any, ...]] = {
    "SetDevice": (c_int,),
    "DeviceGetByPCIBusId": (POINTER(c_int), c_char_p),
    "DeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "DeviceSynchronize": (),
    "RuntimeGetVersion": (POINTER(c_int),),
    "MemGetInfo": (POINTER(c_size_t), POINTER(c_size_t)),
    "Malloc": (POINTER(c_void_p), c_size_t),
    "Free": (c_void_p,),
    "Memcpy": (c_void_p, c_void_p, c_size_t, c_int),
    "MemsetAsync": (c_void_p, c_int, c_size_t, c_void_p),
    "EventCreate": (POINTER(c_void_p),),
    "EventDestroy": (c_void_p,),
    "EventRecord": (c_void_p, c_void_p),
    "EventSynchronize": (c_void_p,),
    "EventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "IpcGetMemHandle": (POINTER(_MemHandle), c_void_p),
    "IpcOpenMemHandle": (POINTER(c_void_p), _MemHandle, c_uint),
    "IpcCloseMemHandle": (c_void_p,),
}


def locate(platform: str) -> Path:
    """Absolute path of the runtime that this process uses, or that PyTorch here would load, or the system's.

    Two runtimes in one process would each have streams of their own. :class:`UnsupportedError` where there is none.
    """
    names = _NAMES[platform]
    folders = [*_mapped_folders(names), *_package_folders(platform)]
    roots = ("ROCM_PATH", "/opt/rocm") if platform == "rocm" else ("CUDA_HOME", "/usr/local/cuda")
    for root in (os.environ.get(roots[0]), roots[1]):
        if root:
            folders += [Path(root, "lib"), Path(root, "lib64")]
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return (folder / name).resolve()
    raise UnsupportedError(f"{names[0]}: not found; install PyTorch for {platform}, or set {roots[0]}")


def _mapped_folders(names: tuple[str, ...]) -> list[Path]:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in file if line.count("/")}
    stems = tuple(name.partition(".so")[0] for name in names)
    return [Path(path).parent for path in sorted(paths) if os.path.basename(path).startswith(stems)]


def _package_folders(platform: str) -> list[Path]:
    """Where wheels keep the runtime; nothing is imported."""
    folders = []
    for package, inside in (("torch", ("lib",)), ("nvidia", ("cu13/lib", "cuda_runtime/lib"))):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folders += [Path(place, part) for part in inside]
    return folders


class Runtime:
    """A runtime bound by path. Pointers, events and streams are integers; stream 0 is the default stream.

    Every call that fails raises :class:`UndecidedError` with the runtime's own text.
    """

    def __init__(self, platform: str, library: Path) -> None:
        if not library.is_absolute():
            raise UnsupportedError(f"{library}: a runtime is bound by its absolute path")
        self.platform = platform
        self._prefix = _PREFIX[platform]
        try:
            loaded = ctypes.CDLL(str(library))
            self._functions = {name: self._bind(loaded, name, types) for name, types in _SYMBOLS.items()}
            self._error_text = self._bind(loaded, "GetErrorString", (c_int,), c_char_p)
            self._forget_error = self._bind(loaded, "GetLastError", ())
        except (OSError, AttributeError) as error:
            raise UnsupportedError(f"{library}: {error}") from None

    def _bind(self, library: ctypes.CDLL, name: str, types: tuple[Any, ...], returns: Any = c_int) -> Any:
        function = library[self._prefix + name]
        function.argtypes, function.restype = types, returns
        return function

    def _call(self, name: str, *arguments: Any) -> None:
        code = self._functions[name](*arguments)
        if code:
            self._forget_error()  # else PyTorch, which asks after each launch, would take it for its own
            text = (self._error_text(code) or b"unknown error").decode(errors="replace")
            raise UndecidedError(f"{self._prefix}{name}: {text} ({code})")

    def device_at(self, pci: str) -> int:
        """Index of the card in this process, whatever variables hide or reorder."""
        device = c_int()
        self._call("DeviceGetByPCIBusId", ctypes.byref(device), pci.encode())
        return device.value

    def use(self, device: int) -> None:
        self._call("SetDevice", device)

    def cache_bytes(self, device: int) -> int | None:
        """Level-2 cache of a CUDA device. None on ROCm, where amdsmi tells all levels."""
        if self.platform != "cuda":
            return None
        value = c_int()
        self._call("DeviceGetAttribute", ctypes.byref(value), _CUDA_L2_CACHE_SIZE, device)
        return value.value or None

    def synchronize(self) -> None:
        self._call("DeviceSynchronize")

    def version(self) -> str:
        """The runtime's version number, as it writes it (13000, 70253211)."""
        value = c_int()
        self._call("RuntimeGetVersion", ctypes.byref(value))
        return str(value.value)

    def available_bytes(self) -> int:
        """Device memory of the current card that no process uses."""
        free, total = c_size_t(), c_size_t()
        self._call("MemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size_bytes: int) -> int:
        return self._pointer("Malloc", size_bytes)

    def free(self, pointer: int) -> None:
        self._call("Free", pointer)

    def copy(self, target: int, source: int, size_bytes: int) -> None:
        """Copy between device and host in either direction, or inside one, and wait for it."""
        self._call("Memcpy", target, source, size_bytes, _MEMCPY_DEFAULT)

    def fill(self, pointer: int, byte: int, size_bytes: int, stream: int = 0) -> None:
        """Enqueue writing one byte value all over a buffer."""
        self._call("MemsetAsync", pointer, byte, size_bytes, stream)

    def event(self) -> int:
        return self._pointer("EventCreate")

    def destroy(self, event: int) -> None:
        self._call("EventDestroy", event)

    def record(self, event: int, stream: int = 0) -> None:
        self._call("EventRecord", event, stream)

    def wait(self, event: int) -> None:
        self._call("EventSynchronize", event)

    def elapsed_s(self, start: int, stop: int) -> float:
        """Seconds between two events that have happened."""
        elapsed_ms = c_float()
        self._call("EventElapsedTime", ctypes.byref(elapsed_ms), start, stop)
        return elapsed_ms.value / 1e3

    def export(self, pointer: int) -> bytes:
        """The 64 bytes by which another process opens memory from :meth:`allocate`."""
        handle = _MemHandle()
        self._call("IpcGetMemHandle", ctypes.byref(handle), pointer)
        return bytes(handle)

    def open(self, exported: bytes) -> int:
        """Map memory that another process exported; close it with :meth:`close`."""
        handle = _MemHandle.from_buffer_copy(exported)
        pointer = c_void_p()
        self._call("IpcOpenMemHandle", ctypes.byref(pointer), handle, _IPC_LAZY_PEER_ACCESS)
        return int(pointer.value or 0)

    def close(self, pointer: int) -> None:
        self._call("IpcCloseMemHandle", pointer)

    def _pointer(self, name: str, *arguments: Any) -> int:
        pointer = c_void_p()
        self._call(name, ctypes.byref(pointer), *arguments)
        return int(pointer.value or 0)
