"""The other transport: shared memory on the host, copied to and from a card beside the call. Standard library only.

For where device memory cannot be opened from another process. Copying happens before the call's window and after it.
What it costs in trust: inputs reach the worker's process a moment before "go", and the worker itself flushes the
card's caches after it has copied them there. A trace says so.
"""

from __future__ import annotations

import ctypes

from solbench.device.native import Runtime
from solbench.evaluate.memory import HostMemory


class Staging:
    """Device memory that mirrors a memory file, and what flushes the card after a copy."""

    def __init__(self, runtime: Runtime, flush_bytes: int) -> None:
        self._runtime = runtime
        self._flush_bytes = max(flush_bytes, 1)
        self._written = runtime.allocate(self._flush_bytes)
        # Read by copying it to the host: a runtime has no other way to read without writing there.
        self._read = runtime.allocate(2 * self._flush_bytes)
        self._target = ctypes.create_string_buffer(2 * self._flush_bytes)
        self._host: HostMemory | None = None
        self._capacity = self._pointer = self._size = 0
        self._byte = 0

    def map(self, host: HostMemory, size_bytes: int) -> int:
        """Pointer to device memory that mirrors ``host`` from now on."""
        if size_bytes > self._capacity:
            if self._pointer:
                self._runtime.free(self._pointer)
            self._pointer, self._capacity = self._runtime.allocate(size_bytes), size_bytes
        self._host, self._size = host, size_bytes
        return self._pointer

    def fetch(self) -> None:
        """Everything from the host, then a flush: written first, read last."""
        assert self._host is not None
        self._runtime.copy(self._pointer, self._host.pointer(), self._size)
        self._byte = (self._byte + 1) % 256
        self._runtime.fill(self._written, self._byte, self._flush_bytes)
        self._runtime.copy(ctypes.addressof(self._target), self._read, 2 * self._flush_bytes)
        self._runtime.synchronize()

    def store(self) -> None:
        """Everything back to the host."""
        assert self._host is not None
        self._runtime.synchronize()
        self._runtime.copy(self._host.pointer(), self._pointer, self._size)
