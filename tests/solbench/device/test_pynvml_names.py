"""The pynvml names, parameters and fields that the CUDA driver uses, against the installed module."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from device_fakes import FakeNvml

from solbench.device import cuda

pynvml = pytest.importorskip("pynvml")


def test_every_name_that_is_used_exists_with_these_parameters() -> None:
    used = set(re.findall(r"\bnvml[A-Z]\w+|\bNVML\w+", Path(cuda.__file__).read_text()))
    used -= {"nvmlClocksEventReason"}
    assert len(used) > 14
    missing = [name for name in used if not hasattr(pynvml, name)]
    assert not missing
    for key in cuda._THROTTLE:
        name = f"nvmlClocksEventReason{key}"
        assert getattr(pynvml, name) == getattr(FakeNvml, name)
    for name, function in vars(FakeNvml).items():
        if name.startswith("nvmlDevice"):
            ours = list(inspect.signature(function).parameters)[1:]
            real = inspect.signature(getattr(pynvml, name)).parameters.values()
            assert ours == [p.name for p in real if p.default is p.empty], name
        elif name.startswith("NVML_"):
            assert getattr(pynvml, name) == function, name


def test_every_field_that_is_read_exists() -> None:
    assert {"domain", "bus", "device"} <= {name for name, _ in pynvml.nvmlPciInfo_t._fields_}
    assert {"pid", "usedGpuMemory"} <= {name for name, _ in pynvml.c_nvmlProcessInfo_v3_t._fields_}
    assert "total" in {name for name, _ in pynvml.c_nvmlMemory_t._fields_}


def test_a_name_that_the_module_lacks_is_noticed() -> None:
    """The fixture that fails the check above."""
    assert not hasattr(pynvml, "nvmlDeviceGetCurrentClockEventReasons")
