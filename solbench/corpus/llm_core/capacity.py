"""How much memory a target has for workloads: stated, or probed in a child process, then rounded down to a class."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass

from solbench.corpus.llm_core.rules import Generation
from solbench.errors import InputError, UndecidedError

GIB = 2**30
PROBE_LIMIT_S = 30.0
# The envelope of a workload does not know the workspaces of a BLAS library.
HARNESS_RESERVE = 256 * 2**20
_UNITS = {"GiB": GIB, "MiB": 2**20, "B": 1}


@dataclass(frozen=True)
class Memory:
    """What a probe found, in bytes: memory that is free, and the largest single block that could be allocated."""

    free: int
    allocatable: int

    @property
    def usable(self) -> int:
        """85 % of what can be relied on, less the reserve of the harness; not below 0."""
        return max(0, min(self.free, self.allocatable) * 85 // 100 - HARNESS_RESERVE)


def capacity_class(usable: int, generation: Generation) -> int:
    """Largest class (GiB) within ``usable`` bytes; :class:`InputError` where even the smallest is larger."""
    fitting = [size for size in generation.classes_gib if size * GIB <= usable]
    if not fitting:
        smallest = generation.classes_gib[0]
        raise InputError("capacity", f"{usable // 2**20} MiB is below the smallest capacity class, {smallest} GiB")
    return fitting[-1]


def parse_capacity(text: str) -> int:
    """Bytes of ``16GiB``, ``512MiB`` or ``17179869184B``."""
    match = re.fullmatch(r"([0-9]{1,15})(GiB|MiB|B)", text)
    if match is None:
        raise InputError("--capacity", f"{text!r} is not a size; write 16GiB, 512MiB or 17179869184B")
    return int(match[1]) * _UNITS[match[2]]


def probe(device: str) -> Memory:
    """Measure ``device`` (``cpu``, ``cuda``, ``cuda:1``; ROCm devices are ``cuda`` to PyTorch) in a child process.

    The child holds at most 90 % of the free memory, one block at a time, and returns all of it by ending.
    :class:`InputError` for a device that is not there, :class:`UndecidedError` when the child hangs or breaks.
    """
    if re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", device) is None:
        raise InputError("--device", f"{device!r} is not a device; write cpu, cuda or cuda:1")
    command = [sys.executable, "-P", "-m", "solbench.corpus.llm_core.probe", device]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise UndecidedError(f"{device}: memory probe exceeded {PROBE_LIMIT_S:.0f} s; pass --capacity") from None
    if done.returncode == InputError.exit_code:
        raise InputError("--device", f"{device}: {done.stderr.strip().splitlines()[-1]}; pass --capacity instead")
    try:
        if done.returncode != 0:
            raise ValueError
        found = json.loads(done.stdout)
        return Memory(int(found["free"]), int(found["allocatable"]))
    except (ValueError, KeyError, TypeError):
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise UndecidedError(f"{device}: memory probe failed: {why}; pass --capacity") from None
