"""What a candidate leaves behind after its calls: threads, and memory that grows from call to call.

Neither is forbidden: thread pools and workspaces are honest. What is left is stopped with the rest of the worker, and
values never repeat, so neither gains anything; a reader should know of it all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Growth below this in all is no growth; above it, it must be this share of what a call returns, call by call.
LEAST_BYTES, SHARE_OF_OUTPUT = 32 << 20, 0.5


@dataclass(frozen=True)
class Look:
    """A stopped worker's tree after one call: its threads, and its private memory in bytes."""

    threads: int
    memory_bytes: int


def look(pids: Iterable[int]) -> Look:
    """Sums over the processes that are still there."""
    threads = memory = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        threads += int(fields.get("Threads", "0"))
        memory += 1024 * int(fields.get("RssAnon", "0").split()[0])
    return Look(threads, memory)


def labels(candidate: Sequence[Look], baseline: Sequence[Look], output_bytes: int) -> tuple[str, ...]:
    """One sentence for each thing that a reader should know; ``candidate`` and ``baseline`` are looks in order."""
    found = []
    if candidate and baseline:
        more = min(look.threads for look in candidate) - max(look.threads for look in baseline)
        if more > 0:
            found.append(f"threads: after every call at least {more} more than the baseline's are left")
    # The first half may still be filling pools and caches of code.
    settled = candidate[len(candidate) // 2 :]
    if len(settled) >= 3:
        grown = settled[-1].memory_bytes - settled[0].memory_bytes
        a_call = grown / (len(settled) - 1)
        if grown >= LEAST_BYTES and a_call >= SHARE_OF_OUTPUT * output_bytes:
            found.append(f"memory: grows by about {a_call / 2**20:.3g} MiB a call")
    return tuple(found)
