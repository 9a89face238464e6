from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from solbench.device import cpu


def test_identity_is_plain_and_stable() -> None:
    first = cpu.identity()
    assert json.loads(json.dumps(first, allow_nan=False)) == first == cpu.identity()
    assert 1 <= first["threads"] <= first["cores"] == len(os.sched_getaffinity(0))
    assert first["caches"] and all(cache["bytes"] > 0 for cache in first["caches"])


def fake_sysfs(root: Path, processors: dict[int, list[tuple[int, str, str, str]]]) -> None:
    for number, caches in processors.items():
        for position, (level, kind, size, shared) in enumerate(caches):
            folder = root / f"cpu{number}" / "cache" / f"index{position}"
            folder.mkdir(parents=True)
            for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
                (folder / name).write_text(f"{text}\n")


def test_caches_are_counted_once_an_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chiplets of two cores: private second levels, a third level each."""
    processors: dict[int, list[tuple[int, str, str, str]]] = {}
    for number in range(4):
        pair = "0-1" if number < 2 else "2-3"
        processors[number] = [
            (1, "Data", "32K", str(number)), (1, "Instruction", "32K", str(number)),
            (2, "Unified", "1024K", str(number)), (3, "Unified", "32M", pair),
        ]  # fmt: skip
    fake_sysfs(tmp_path, processors)
    monkeypatch.setattr(cpu, "_CPU", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert cpu.caches() == [
        {"level": 1, "type": "Data", "bytes": 32 << 10, "instances": 4},
        {"level": 2, "type": "Unified", "bytes": 1 << 20, "instances": 4},
        {"level": 3, "type": "Unified", "bytes": 32 << 20, "instances": 2},
    ]
    assert cpu.last_level_bytes() == 64 << 20 and cpu.flush_bytes() == 128 << 20
    assert cpu.level_bytes(cpu.caches(), 2) == 4 << 20 and cpu.level_bytes(cpu.caches(), 4) == 0
    # Only the caches of processors that we may use count.
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2})
    assert cpu.last_level_bytes() == 32 << 20


def test_no_sysfs_falls_back_to_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "_CPU", tmp_path)
    assert cpu.flush_bytes() == 2 * cpu.FALLBACK_CACHE_BYTES
    assert cpu.identity()["cache_source"] == "table"


@pytest.mark.parametrize(("quota", "threads"), [(None, 4), (1.5, 1), (0.2, 1), (2.0, 2), (64.0, 4)])
def test_threads_respect_a_quota(monkeypatch: pytest.MonkeyPatch, quota: Any, threads: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(cpu, "_cgroup_quota", lambda: quota)
    assert cpu.thread_count() == threads


def test_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The governor's word, else that of /proc/cpuinfo, of the processors that we may use; else none."""
    monkeypatch.setattr(cpu, "_CPU", tmp_path)
    monkeypatch.setattr(cpu, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2})
    assert cpu.clock_hz() is None
    blocks = (f"processor\t: {number}\ncpu MHz\t\t: {2000 + 500 * number}.000\n" for number in range(3))
    (tmp_path / "cpuinfo").write_text("\n".join(blocks))
    assert cpu.clock_hz() == pytest.approx(2.5e9)
    for number in range(3):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{3_000_000 + 100_000 * number}\n")
    assert cpu.clock_hz() == pytest.approx(3.1e9)
