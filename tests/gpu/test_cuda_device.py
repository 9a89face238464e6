"""The CUDA device layer on a real card. Runs where it is named: ``python3 -m pytest -s tests/gpu/test_cuda_device.py``.

Needs pytest, click, PyYAML, nvidia-ml-py and PyTorch, and an idle card; nothing is changed on it. What was seen is
printed, and written to ``$OUT/cuda_device.json`` where that variable is set.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solbench.device import cuda, evidence, native
from solbench.device.card import Card, flush_bytes
from solbench.device.ownership import own, recover
from solbench.errors import UndecidedError, UnsupportedError

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
SOLBENCH = (sys.executable, "-c", "import sys; from solbench.cli import run; sys.exit(run(sys.argv[1:]))")
# About a millisecond, in which the host queues what follows: gaps between launches are then no part of an interval.
QUEUE_CYCLES = 2_000_000
SEEN: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    yield
    text = json.dumps(SEEN, indent=2, default=str)
    print(f"\n{text}")
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "cuda_device.json").write_text(text)


@pytest.fixture(scope="module")
def driver() -> cuda.Cuda:
    try:
        return cuda.start()
    except UnsupportedError as error:
        pytest.fail(str(error))  # it was named, so it is to run


@pytest.fixture(scope="module")
def card(driver: cuda.Cuda) -> Card:
    return driver.cards()[0]


@pytest.fixture(scope="module")
def runtime(card: Card) -> native.Runtime:
    torch.cuda.init()
    runtime = native.Runtime("cuda", native.locate("cuda"))
    runtime.use(runtime.device_at(card.pci))
    return runtime


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GPU_LOCK_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*SOLBENCH, "device", *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_commands_on_an_idle_card(card: Card, tmp_path: Path) -> None:
    """First, before this process computes on the card."""
    assert not torch.cuda.is_initialized()
    listed = json.loads(command(tmp_path, "list", "--json").stdout)
    assert card.uuid in [entry["uuid"] for entry in listed["cards"]]
    done = command(tmp_path, "doctor")
    SEEN["doctor"] = {"exit": done.returncode, "lines": done.stdout.splitlines()}
    assert done.returncode == 0, done.stdout
    code = "import torch; print(float(torch.ones(8, device='cuda').sum())); raise SystemExit(7)"
    done = command(tmp_path, "lock", "--uuid", card.uuid, "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout.strip()) == (7, "8.0"), done.stderr
    assert "clocks unlocked: no stable level is known for" in done.stderr
    receipt = json.loads(evidence.receipt_path(tmp_path, card.uuid).read_text())
    SEEN["receipt"] = receipt
    assert receipt["restored"] is None and not evidence.evidence_path(tmp_path, card.uuid).exists()


def test_a_killed_owner_blocks(driver: cuda.Cuda, card: Card, tmp_path: Path) -> None:
    environment = {**os.environ, "GPU_LOCK_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    wait = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    arguments = [*SOLBENCH, "device", "lock", "--uuid", card.uuid, "--", sys.executable, "-c", wait]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        owner.kill()
        owner.wait(10)
        os.kill(child, signal.SIGKILL)
    time.sleep(0.5)
    with pytest.raises(UndecidedError, match="was killed"), own(driver, card, tmp_path):
        pytest.fail("owned")
    assert recover(driver, card, tmp_path) is not None
    with own(driver, card, tmp_path) as mine, mine.execution():
        assert not mine.clocks.locked


def test_the_card_is_the_one_that_torch_sees(card: Card, runtime: native.Runtime) -> None:
    seen = torch.cuda.get_device_properties(runtime.device_at(card.pci))
    SEEN["card"] = {**vars(card), "runtime": str(native.locate("cuda"))}
    assert card.uuid.removeprefix("GPU-") == str(seen.uuid)
    assert card.name == seen.name and card.arch == f"sm_{seen.major}{seen.minor}"
    assert card.memory_bytes is not None and 0 <= card.memory_bytes - seen.total_memory < 0.05 * card.memory_bytes
    level_2 = runtime.cache_bytes(0)
    assert level_2 == seen.L2_cache_size
    SEEN["flush_bytes"] = flush_bytes(card, level_2)
    assert level_2 is not None and SEEN["flush_bytes"] >= 2 * level_2


def test_one_cuda_runtime_is_in_the_process(runtime: native.Runtime) -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split()[-1] for line in maps if "/libcudart" in line}
    SEEN["mapped"] = sorted(mapped)
    assert {os.path.realpath(path) for path in mapped} == {str(native.locate("cuda"))}


def test_an_observation(driver: cuda.Cuda, card: Card, runtime: native.Runtime, tmp_path: Path) -> None:
    idle = driver.observe(card)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(200):
        a @ a
    busy = driver.observe(card)
    torch.cuda.synchronize()
    SEEN["idle"], SEEN["busy"] = vars(idle), vars(busy)
    for seen in (idle, busy):
        assert seen.graphics_hz and 1e8 < seen.graphics_hz < 3e9
        assert seen.memory_hz and 1e8 < seen.memory_hz < 1e10
        assert seen.power_w and 10 < seen.power_w < 1500
        assert seen.temperature_c and 5 < seen.temperature_c < 110
        assert seen.throttle is not None and seen.level is None
    # This process computes there now: to another owner the card is busy, if the driver lists processes here.
    done = command(tmp_path, "lock", "--uuid", card.uuid, "--", "true")
    SEEN["lock while this process computes"] = {"exit": done.returncode, "said": done.stderr.strip()}
    if busy.processes:
        assert done.returncode == 3 and "busy with" in done.stderr


def test_events_agree_with_torchs(runtime: native.Runtime) -> None:
    stream = torch.cuda.current_stream().cuda_stream
    ours = [runtime.event(), runtime.event()]
    pairs = []
    for cycles in (20_000, 200_000, 2_000_000, 20_000_000):
        theirs = [torch.cuda.Event(enable_timing=True) for _ in ours]
        for event in theirs:
            event.record()  # made at its first use
        runtime.synchronize()
        torch.cuda._sleep(QUEUE_CYCLES)
        runtime.record(ours[0], stream)
        theirs[0].record()
        torch.cuda._sleep(cycles)
        theirs[1].record()
        runtime.record(ours[1], stream)
        runtime.wait(ours[1])
        pairs.append((runtime.elapsed_s(*ours), theirs[0].elapsed_time(theirs[1]) / 1e3))
    SEEN["events_s (ours around torch's)"] = pairs
    for native_s, torch_s in pairs:
        assert 0 < torch_s <= native_s < torch_s * 1.01 + 50e-6
    assert pairs[3][0] > 5 * pairs[2][0]
    empty = []
    for _ in range(200):
        runtime.record(ours[0], stream)
        runtime.record(ours[1], stream)
        runtime.wait(ours[1])
        empty.append(runtime.elapsed_s(*ours))
    SEEN["two events, nothing between (median s)"] = statistics.median(empty)
    assert 0 <= statistics.median(empty) < 50e-6
    for event in ours:
        runtime.destroy(event)


def test_an_error_has_the_runtimes_words(runtime: native.Runtime) -> None:
    with pytest.raises(UndecidedError, match=r"cudaSetDevice: invalid device ordinal \(101\)"):
        runtime.use(99)
    with pytest.raises(UndecidedError, match="cudaMalloc: out of memory"):
        runtime.allocate(1 << 50)
    assert float(torch.ones(3, device="cuda").sum()) == 3.0, "torch goes on"


CHILD = """
import ctypes, sys
from pathlib import Path
from solbench.device.native import Runtime
runtime = Runtime("cuda", Path(sys.argv[1])); runtime.use(runtime.device_at(sys.argv[2]))
at = runtime.open(bytes.fromhex(sys.argv[3])); seen = ctypes.create_string_buffer(4096)
runtime.copy(ctypes.addressof(seen), at, 4096); assert seen.raw == b"\\xab" * 4096
runtime.fill(at, 0xCD, 2048); runtime.synchronize(); runtime.close(at)
assert "torch" not in sys.modules
"""


def test_memory_reaches_another_process(card: Card, runtime: native.Runtime) -> None:
    size = 64 << 20
    pointer = runtime.allocate(size)
    runtime.fill(pointer, 0xAB, size)
    runtime.synchronize()
    begin = time.perf_counter()
    arguments = [str(native.locate("cuda")), card.pci, runtime.export(pointer).hex()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], env=environment, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    SEEN["child that opens shared memory (s)"] = time.perf_counter() - begin
    assert done.returncode == 0, done.stderr
    seen = ctypes.create_string_buffer(4096)
    runtime.copy(ctypes.addressof(seen), pointer, 4096)
    assert seen.raw == b"\xcd" * 2048 + b"\xab" * 2048
    runtime.free(pointer)


def test_a_flush_empties_the_cache_and_takes_a_steady_time(card: Card, runtime: native.Runtime) -> None:
    """Write one buffer, read another of twice its size: then data that were in the cache are read from memory again."""
    stream = torch.cuda.current_stream().cuda_stream
    size = flush_bytes(card, runtime.cache_bytes(0))
    written = runtime.allocate(size)
    read = torch.zeros(2 * size // 4, device="cuda")
    data = torch.randn((32 << 20) // 4, device="cuda")
    start, stop = runtime.event(), runtime.event()

    def timed(work: Any) -> float:
        torch.cuda._sleep(QUEUE_CYCLES)
        runtime.record(start, stream)
        work()
        runtime.record(stop, stream)
        runtime.wait(stop)
        return runtime.elapsed_s(start, stop)

    def flush() -> None:
        runtime.fill(written, 1, size, stream)
        read.sum()

    data.sum()
    flush()
    flushes = [timed(flush) for _ in range(50)]
    warm = [timed(data.sum) for _ in range(50)]
    cold = []
    for _ in range(50):
        flush()
        cold.append(timed(data.sum))
    figures = {
        name: {"median": statistics.median(times), "min": min(times), "max": max(times)}
        for name, times in (("flush_s", flushes), ("warm 32 MiB sum_s", warm), ("cold 32 MiB sum_s", cold))
    }
    SEEN["flush"] = {"written_bytes": size, "read_bytes": 2 * size, **figures}
    moved_per_s = 3 * size / statistics.median(flushes)
    SEEN["flush"]["moved_bytes_per_s"] = moved_per_s
    assert 0.3e12 < moved_per_s < 8e12, "not absurdly slow, and no faster than memory and what level 2 may keep allow"
    assert statistics.median(cold) > statistics.median(warm)
    runtime.free(written)
