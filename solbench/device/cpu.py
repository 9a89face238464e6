"""The ``cpu`` target: what this processor is, how large its caches are, how many threads a side gets."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from solbench import canonical

# Flags that decide which code a compiler or a library chooses for number crunching.
FLAGS_THAT_MATTER = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16",
    "avx512_vnni", "avx_vnni", "amx_tile", "amx_bf16", "amx_fp16", "amx_int8", "asimd", "asimdhp", "asimddp", "bf16",
    "i8mm", "sve", "sve2",
)  # fmt: skip
# Where the kernel tells no cache sizes: not smaller than the last level of common processors, per processor.
FALLBACK_CACHE_BYTES = 64 << 20
_CPU = Path("/sys/devices/system/cpu")
_CPUINFO = Path("/proc/cpuinfo")


def identity() -> dict[str, Any]:
    """Model, cores, caches and flags that matter of this machine: plain JSON, the same at every call."""
    info = _cpuinfo()
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return {
        "architecture": platform.machine(),
        "model": info.get("model name") or info.get("CPU part") or platform.processor() or "unknown",
        "vendor": info.get("vendor_id") or info.get("CPU implementer") or "unknown",
        "stepping": "/".join(info.get(name, "?") for name in ("cpu family", "model", "stepping")),
        "cores": len(os.sched_getaffinity(0)),
        "threads": thread_count(),
        "caches": caches(),
        "cache_source": "sysfs" if _sysfs_caches() else "table",
        "flags": [flag for flag in FLAGS_THAT_MATTER if flag in flags],
        "hypervisor": "hypervisor" in flags,
    }


def processor_key() -> str:
    """Identity of what ``-march=native`` means here."""
    info = _cpuinfo()
    names = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    return canonical.derived_key("processor", {name: info.get(name, "") for name in names})


def thread_count() -> int:
    """Threads that candidate and baseline get: the processors we may run on, at most what a cgroup quota allows."""
    usable = len(os.sched_getaffinity(0))
    quota = _cgroup_quota()
    return max(1, min(usable, int(quota))) if quota is not None else usable


def caches() -> list[dict[str, Any]]:
    """Caches of the processors we may run on: level, type, bytes of one instance, number of instances."""
    found = _sysfs_caches()
    if found:
        return found
    return [{"level": 3, "type": "Unified", "bytes": FALLBACK_CACHE_BYTES, "instances": 1}]


def level_bytes(found: Sequence[Mapping[str, Any]], level: int | None) -> int:
    """Bytes of all data caches of one level together (None: the largest level); 0 where there is none."""
    totals: dict[int, int] = {}
    for cache in found:
        totals[cache["level"]] = totals.get(cache["level"], 0) + cache["bytes"] * cache["instances"]
    return max(totals.values()) if level is None else totals.get(level, 0)


def last_level_bytes() -> int:
    """Bytes of the largest cache level over all its instances that we may use."""
    return level_bytes(caches(), None)


def flush_bytes() -> int:
    """Bytes that a flush writes, and then reads: twice the last-level cache."""
    return 2 * last_level_bytes()


def memory_bytes() -> int:
    """Physical memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def clock_hz() -> float | None:
    """Mean clock of the processors we may run on, by the kernel's word at this moment; None where it tells none.

    A virtual machine's kernel may only know the nominal clock.
    """
    usable = sorted(os.sched_getaffinity(0))
    try:
        files = [_CPU / f"cpu{number}" / "cpufreq" / "scaling_cur_freq" for number in usable]
        hertz = [1e3 * float(file.read_text()) for file in files]
    except (OSError, ValueError):
        hertz = _cpuinfo_hz(frozenset(usable))
    return sum(hertz) / len(hertz) if hertz else None


def _cpuinfo_hz(usable: frozenset[int]) -> list[float]:
    """The clocks that /proc/cpuinfo tells of these processors."""
    found, number = [], -1
    try:
        text = _CPUINFO.read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "processor" and value.strip().isdigit():
            number = int(value)
        elif name.strip() == "cpu MHz" and number in usable:
            found.append(1e6 * float(value))
    return found


def _cpuinfo() -> dict[str, str]:
    """Fields of the first processor."""
    fields: dict[str, str] = {}
    try:
        text = _CPUINFO.read_text(encoding="ascii", errors="replace")
    except OSError:
        return fields
    for line in text.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    return fields


def _sysfs_caches() -> list[dict[str, Any]]:
    """Every data or unified cache that belongs to a processor of ours, each physical instance counted once."""
    instances: dict[tuple[int, str, int], set[str]] = {}
    for number in sorted(os.sched_getaffinity(0)):
        for index in sorted(_CPU.glob(f"cpu{number}/cache/index*")):
            try:
                level = int((index / "level").read_text())
                kind = (index / "type").read_text().strip()
                size = _parse_size((index / "size").read_text().strip())
                shared = (index / "shared_cpu_list").read_text().strip()
            except (OSError, ValueError):
                continue
            if kind != "Instruction" and size > 0:
                instances.setdefault((level, kind, size), set()).add(shared)
    return [
        {"level": level, "type": kind, "bytes": size, "instances": len(shared)}
        for (level, kind, size), shared in sorted(instances.items())
    ]


def _parse_size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def _cgroup_quota() -> float | None:
    """Processors that a cgroup grants, or None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    try:
        folder = Path("/sys/fs/cgroup/cpu")
        granted = int((folder / "cpu.cfs_quota_us").read_text())
        return None if granted <= 0 else granted / int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError, ZeroDivisionError):
        return None
