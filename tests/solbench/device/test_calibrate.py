from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from solar.hardware import Machine, lint
from solbench.device import calibrate, cpu
from solbench.device.calibrate import Probe, machine_model
from solbench.errors import UnsupportedError

PROBE = Probe(fp32_ops_per_s=1e11, read_bytes_per_s=2e10, copy_bytes_per_s=3e10)


def identity(*flags: str) -> dict[str, Any]:
    caches = [
        {"level": 2, "type": "Unified", "bytes": 512 << 10, "instances": 2},
        {"level": 3, "type": "Unified", "bytes": 32 << 20, "instances": 1},
    ]
    return {"model": "some cpu", "flags": list(flags), "caches": caches, "cache_source": "sysfs"}


def test_model_is_a_machine_of_solar() -> None:
    machine = Machine.from_dict(machine_model(PROBE, identity("avx2", "fma")))
    assert (machine.name, machine.origin, machine.device) == ("cpu", "calibrated", "some cpu")
    assert lint(machine) == []
    # The faster of reading and copying, and a quarter more than was measured.
    assert machine.memory.per_s == pytest.approx(3.75e10)
    rates = {name: rate.per_s for name, rate in machine.engines["valu"].items()}
    assert rates == pytest.approx({
        "float64": 0.625e11, "float32": 1.25e11, "tfloat32": 1.25e11, "float16": 1.25e11, "bfloat16": 1.25e11,
        "int8": 5e11,
    })  # fmt: skip
    assert "matrix" not in machine.engines
    assert machine.absorbed_store_bytes.value == machine.caches["last_level_bytes"].value == 32 << 20
    assert machine.caches["l2_bytes"].value == 1 << 20


def test_flags_raise_rates() -> None:
    machine = Machine.from_dict(machine_model(PROBE, identity("avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8")))
    valu, matrix = machine.engines["valu"], machine.engines["matrix"]
    assert valu["bfloat16"].per_s == valu["float16"].per_s == pytest.approx(2.5e11)
    assert matrix["bfloat16"].per_s == pytest.approx(40e11) and matrix["int8"].per_s == pytest.approx(80e11)
    assert valu["float32"].confidence == "measured" and valu["bfloat16"].confidence == "low"


def test_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    # A small cache makes a small buffer: this checks that the probe runs, not what it finds.
    monkeypatch.setattr(cpu, "last_level_bytes", lambda: 1 << 20)
    monkeypatch.setattr(calibrate, "BLOCKS_S", 0.02)
    found = calibrate.probe()
    assert 1e8 < found.fp32_ops_per_s < 1e15
    assert min(found.read_bytes_per_s, found.copy_bytes_per_s) > 1e7
    assert found.memory_bytes_per_s == max(found.read_bytes_per_s, found.copy_bytes_per_s)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="apt-get install"):
        calibrate.probe()


def test_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = []
    monkeypatch.setattr(calibrate, "probe", lambda: calls.append(1) or PROBE)
    first = calibrate.remembered_cpu(tmp_path / "hardware")
    assert calibrate.remembered_cpu(tmp_path / "hardware") == first and calls == [1]
    (path,) = (tmp_path / "hardware").iterdir()
    path.write_text(json.dumps({"schema": "something else"}))
    assert calibrate.remembered_cpu(tmp_path / "hardware") == first and calls == [1, 1]
