"""Random C programs compiled by clang for gfx1200 and for this processor compute the same bits."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operand_samples import DTYPES
from random_programs import INPUTS, OUTPUTS, device_source, host_source

from solbench.gfx12.arena import Arena
from solbench.gfx12.launch import Launch
from solbench.gfx12.program import load
from solbench.gfx12.run import Options, run

CLANG = shutil.which("clang-22")
COUNT, STEPS = 128, 40
_FLAGS = ("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-w", "-std=gnu17", "-Xclang",
          "-ffloat16-excess-precision=none")  # fmt: skip
NARROW = {"u8": np.uint8, "i8": np.int8}


def _compile(folder: Path, source: str, result: str, *options: str) -> Path:
    (folder / f"{result}.c").write_text(source)
    command = [str(CLANG), *options, *_FLAGS, f"{result}.c", "-o", result]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / result


def _inputs(seed: int) -> list[Any]:
    """Values of each input: mostly small, some of any bits."""
    random = np.random.default_rng(seed)
    found = []
    for kind in INPUTS.values():
        dtype = np.dtype((DTYPES | NARROW)[kind])
        noise = np.frombuffer(random.bytes(COUNT * dtype.itemsize), dtype)
        if dtype.kind == "f":
            small = random.standard_normal(COUNT) * 10.0 ** random.integers(-2, 3, COUNT)
        else:
            small = random.integers(-5 if dtype.kind == "i" else 0, 100, COUNT)
        found.append(np.where(random.random(COUNT) < 0.6, small.astype(dtype), noise))
    return found


def _differences(folder: Path, seeds: range, optimisation: str, options: Options) -> list[str]:
    card = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx1200", "-nogpulib", optimisation)
    here = ("-O1", "-shared", "-fPIC", "-mfma", "-mf16c", "-Wl,--no-as-needed", "-lm")
    device = _compile(folder, device_source(seeds, STEPS), "device", *card)
    host = ctypes.CDLL(str(_compile(folder, host_source(seeds, STEPS), "host.so", *here)))
    code = device.read_bytes()
    wrong = []
    for seed in seeds:
        arrays = _inputs(seed)
        wanted, got = np.zeros((COUNT, OUTPUTS), np.uint64), np.zeros((COUNT, OUTPUTS), np.uint64)
        getattr(host, f"program_{seed}")(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, wanted)), COUNT)
        assert wanted.any()
        arena = Arena()
        addresses = [arena.add(f"argument {n}", x.reshape(-1).view(np.uint8)) for n, x in enumerate((*arrays, got))]
        program = load(code, None, f"program_{seed}", "test")
        launch = Launch((COUNT // 64, 1, 1), (64, 1, 1), np.array(addresses, np.uint64).tobytes())
        outcome = run(program, launch, arena, options)
        places = np.argwhere(got != wanted)
        if not outcome.clean or len(places):
            first = [hex(int(x[tuple(places[0])])) for x in (got, wanted)] if len(places) else []
            wrong.append(f"program {seed} {optimisation}: {outcome.unsupported} {outcome.findings[:1]} {first}")
    return wrong


@pytest.mark.skipif(CLANG is None or platform.machine() != "x86_64", reason="clang-22 is not installed")
@pytest.mark.parametrize(("first", "optimisation"), [(0, "-O2"), (100, "-O0")])
def test_programs_compute_the_same_as_the_processor(first: int, optimisation: str, tmp_path: Path) -> None:
    assert not _differences(tmp_path, range(first, first + 6), optimisation, Options(strict_waits=True))


@pytest.mark.slow
@pytest.mark.skipif(CLANG is None or platform.machine() != "x86_64", reason="clang-22 is not installed")
@pytest.mark.parametrize("first", range(1000, 1200, 25))
def test_many_programs_compute_the_same_as_the_processor(first: int, tmp_path: Path) -> None:
    optimisation = ("-O1", "-O2", "-O0", "-O3")[first // 25 % 4]
    assert not _differences(tmp_path, range(first, first + 25), optimisation, Options())
