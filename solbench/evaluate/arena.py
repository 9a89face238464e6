"""Shared memory between referee and workers: one memory file, tensors at fixed offsets.

The file is sealed against shrinking, so that no worker can pull it from under the referee.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, replace
from typing import Any

from solbench.model.definition import DTYPE_BITS, Definition, resolve_shape, storage_bytes

ALIGNMENT = 4096
# Heap for the temporaries of a call, as a multiple of its inputs and outputs, with its least and its most.
HEAP_PER_BYTE, HEAP_LEAST, HEAP_MOST = 6, 32 << 20, 1 << 30
# A batch has each of its calls on a copy of the slots; these bytes for all copies together.
BATCH_BYTES, BATCH_BYTES_OF_A_CARD = 256 << 20, 4 << 30


@dataclass(frozen=True)
class Slot:
    """Place of one tensor: contiguous, row-major, ``nbytes`` at ``offset``."""

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: str
    offset: int
    nbytes: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "role": self.role, "shape": list(self.shape), "dtype": self.dtype,
            "offset": self.offset, "nbytes": self.nbytes,
        }  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """Slots of all tensor inputs and outputs of one workload in declared order, and the bytes that they span."""

    slots: tuple[Slot, ...]
    size: int

    @property
    def input_bytes(self) -> int:
        return sum(slot.nbytes for slot in self.slots if slot.role == "input")

    @property
    def output_bytes(self) -> int:
        return sum(slot.nbytes for slot in self.slots if slot.role == "output")


def layout(definition: Definition, axes: dict[str, int]) -> Layout:
    """Where each tensor of a workload lies; Python scalars have no slot."""
    slots, offset = [], 0
    for role, specs in (("input", definition.inputs), ("output", definition.outputs)):
        for name, spec in specs.items():
            if spec.shape is None:
                continue
            nbytes = storage_bytes(spec, axes)
            slots.append(Slot(name, role, resolve_shape(spec, axes), spec.dtype, offset, nbytes))
            offset += -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
    return Layout(tuple(slots), offset)


def copies(plan: Layout, most: int, available: int, batch_bytes: int = BATCH_BYTES) -> int:
    """Copies of the slots that an arena holds for batches, at multiples of the layout's size.

    At most ``most``; two, or as many as fit ``batch_bytes``, where half of what a sample leaves of the ``available``
    bytes holds them; else 1.
    """
    free = available - needed_memory(plan)
    # Each copy is there three times: shared, the referee's own values, what the reference made of them.
    wanted = max(batch_bytes // max(plan.size, 1), 2)
    return max(1, min(most, wanted, free // 2 // max(3 * plan.size, 1)))


def copy_slots(plan: Layout, number: int, shared: frozenset[str]) -> tuple[Slot, ...]:
    """Slots of copy ``number``; 0 is the layout itself. Those named in ``shared`` lie once, for all copies."""
    return tuple(
        slot if slot.name in shared else replace(slot, offset=slot.offset + number * plan.size) for slot in plan.slots
    )


def unsupported_dtype(definition: Definition, supported: frozenset[str]) -> str | None:
    """First dtype of a tensor that is not in ``supported``, or None."""
    for spec in (*definition.inputs.values(), *definition.outputs.values()):
        if spec.shape is not None and spec.dtype not in supported:
            return spec.dtype
    return None


@dataclass(frozen=True)
class Shared:
    """Memory for the tensors of a workload: a memory file, or beside one of no use device memory by its handle.

    ``staged``: a worker copies it to its card before a call and back afterwards (:mod:`solbench.evaluate.staging`).
    """

    descriptor: int
    handle: str | None = None
    staged: bool = False

    @property
    def on_host(self) -> bool:
        """Whether calls work on this very memory, by the processor."""
        return self.handle is None and not self.staged

    def close(self) -> None:
        os.close(self.descriptor)


def create(size: int) -> int:
    """Descriptor of a new zeroed memory file of ``size`` bytes whose length is sealed. The caller closes it."""
    handle = os.memfd_create("solbench-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(handle, max(size, ALIGNMENT))
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except OSError:
        os.close(handle)
        raise
    return handle


def available_memory() -> int:
    """Bytes that can be allocated without swapping: the kernel's estimate."""
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def heap_bytes(plan: Layout) -> int:
    """Bytes of heap that a worker touches before its first call of a workload: see ``worker.touch_heap``."""
    return min(HEAP_PER_BYTE * (plan.input_bytes + plan.output_bytes) + HEAP_LEAST, HEAP_MOST)


def needed_memory(plan: Layout) -> int:
    """Bytes that one workload needs at its peak in all processes together, estimated.

    Inputs: shared, the referee's pristine copy, the reference's copy. Outputs: shared, expected, two workers'
    results, and up to four float64 temporaries of the comparison. Temporaries of the reference are taken as another
    three times inputs and outputs; two workers' heaps come on top.
    """
    widest = max(
        (slot.nbytes * 64 // DTYPE_BITS[slot.dtype] for slot in plan.slots if slot.role == "output"), default=0
    )
    return 6 * plan.input_bytes + 7 * plan.output_bytes + 4 * widest + 2 * heap_bytes(plan)
