"""The child of a memory probe: ``python -m solbench.corpus.llm_core.probe DEVICE`` prints free and allocatable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

STEPS = 8
QUANTUM = 64 * 2**20


def allocatable_bytes(free: int, allocate: Callable[[int], bool]) -> int:
    """Largest multiple of ``QUANTUM`` within 90 % of ``free`` that ``allocate`` was seen to provide.

    At most ``STEPS`` attempts: the ceiling first, then bisection, so the result may fall short by 1/128 of it.
    """
    low, high = 0, free * 90 // 100 // QUANTUM
    middle = high
    for _ in range(STEPS):
        if low >= high:
            break
        if allocate(middle * QUANTUM):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low * QUANTUM


def _free(device: str) -> int:
    import torch

    if device == "cpu":
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    if not torch.cuda.is_available():
        raise LookupError("no such device (PyTorch sees no GPU)")
    index = torch.device(device).index or 0
    if index >= torch.cuda.device_count():
        raise LookupError(f"no such device (PyTorch sees {torch.cuda.device_count()})")
    return int(torch.cuda.mem_get_info(index)[0])


def _allocate(device: str, size: int) -> bool:
    import torch

    try:
        torch.empty(size, dtype=torch.uint8, device=device)
    except RuntimeError:  # PyTorch's out-of-memory errors derive from it
        return False
    if device != "cpu":
        # Or the caching allocator would still hold the block at the next attempt.
        torch.cuda.empty_cache()
    return True


def main(device: str) -> int:
    """Print ``{"free": bytes, "allocatable": bytes}``; exit code 2 where the device is not there."""
    try:
        free = _free(device)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    print(json.dumps({"free": free, "allocatable": allocatable_bytes(free, lambda size: _allocate(device, size))}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
