"""The fake amdsmi against the real package, and the ROCm driver over the real package and a scripted C library."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from device_fakes import FAKE, Cards

from solbench.device import clocks
from solbench.device.card import Card, Process
from solbench.device.rocm import Rocm
from solbench.errors import UndecidedError

UUID = b"d3ff7590-0000-1000-80a1-b2c3d4e5f601"
NO_PERM = 10  # amdsmi.h: AMDSMI_STATUS_NO_PERM


class Function:
    """One exported function; unscripted ones succeed and leave their structures as they are: zero."""

    def __init__(self, body: Any) -> None:
        self.body = body
        self.restype: Any = None
        self.argtypes: Any = None

    def __call__(self, *arguments: Any) -> int:
        if self.argtypes is not None:
            assert len(arguments) == len(self.argtypes)
        return (self.body(*arguments) if self.body else 0) or 0


class Library:
    """A libamd_smi.so with one gfx1200 card."""

    def __init__(self) -> None:
        self.level = 0
        self.refuse_set = False
        self.functions: dict[str, Function] = {}

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self.functions:
            self.functions[name] = Function(getattr(type(self), f"do_{name}", lambda *_: 0).__get__(self))
        return self.functions[name]

    def one(self, count: Any, handles: Any) -> None:
        count._obj.value = 1
        if handles:
            handles[0] = 1

    def do_amdsmi_get_socket_handles(self, count: Any, handles: Any) -> None:
        self.one(count, handles)

    def do_amdsmi_get_processor_handles(self, socket: Any, count: Any, handles: Any) -> None:
        self.one(count, handles)

    def do_amdsmi_get_gpu_device_uuid(self, handle: Any, length: Any, text: Any) -> None:
        text.value = UUID

    def do_amdsmi_get_gpu_asic_info(self, handle: Any, info: Any) -> None:
        info._obj.market_name = b"AMD Radeon RX 9060 XT"
        info._obj.target_graphics_version = 0x1200

    def do_amdsmi_get_gpu_memory_total(self, handle: Any, kind: int, total: Any) -> None:
        assert kind == 0  # amdsmi.h: AMDSMI_MEM_TYPE_VRAM
        total._obj.value = 16 << 30

    def do_amdsmi_get_gpu_cache_info(self, handle: Any, info: Any) -> None:
        rows = ((1, 32, 32), (2, 4096, 1), (3, 32768, 1))
        info._obj.num_cache_types = len(rows)
        for entry, (level, kib, count) in zip(info._obj.cache, rows):
            entry.cache_level, entry.cache_size, entry.num_cache_instance = level, kib, count

    def do_amdsmi_get_clock_info(self, handle: Any, kind: int, info: Any) -> None:
        info._obj.clk = {0: 2780, 4: 1124}[kind]  # amdsmi.h: GFX 0, MEM 4

    def do_amdsmi_get_power_info(self, handle: Any, info: Any) -> None:
        info._obj.average_socket_power, info._obj.current_socket_power = 141, 0xFFFF_FFFF

    def do_amdsmi_get_temp_metric(self, handle: Any, kind: int, metric: int, value: Any) -> None:
        assert (kind, metric) == (1, 0)  # amdsmi.h: HOTSPOT 1, CURRENT 0
        value._obj.value = 61

    def do_amdsmi_get_gpu_process_list(self, handle: Any, count: Any, entries: Any) -> None:
        count._obj.value = 1
        entries[0].pid, entries[0].name, entries[0].memory_usage.vram_mem = 78, b"python", 1 << 30

    def do_amdsmi_get_gpu_compute_process_info(self, entries: Any, count: Any) -> None:
        count._obj.value = 1
        if entries:
            entries[0].process_id = 78

    def do_amdsmi_get_gpu_perf_level(self, handle: Any, level: Any) -> None:
        level._obj.value = self.level

    def do_amdsmi_set_gpu_perf_level(self, handle: Any, level: int) -> int:
        if self.refuse_set:
            return NO_PERM
        self.level = int(level)
        return 0


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, Library]]:
    """The installed package, loaded under another name over the scripted library."""
    try:
        where = Path(str(importlib.metadata.distribution("amdsmi").locate_file("amdsmi")))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the amdsmi package is not installed")
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    spec = importlib.util.spec_from_file_location(
        "amdsmi_wheel", where / "__init__.py", submodule_search_locations=[str(where)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["amdsmi_wheel"] = module
    try:
        spec.loader.exec_module(module)
        yield module, library
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "amdsmi_wheel"]:
            del sys.modules[name]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    cards = Cards(tmp_path)
    cards.script(processes=[[78, "python", 1 << 30]])
    cards.script_all(computing=[78])
    monkeypatch.setenv("FAKE_AMDSMI", str(cards.path))
    spec = importlib.util.spec_from_file_location("amdsmi_fake", FAKE / "amdsmi.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_driver_over_the_real_package(wheel: tuple[ModuleType, Library]) -> None:
    amdsmi, library = wheel
    amdsmi.amdsmi_init()
    driver = Rocm(amdsmi, amdsmi.AmdSmiException)
    (card,) = driver.cards()
    assert card == Card(
        "rocm", UUID.decode(), "AMD Radeon RX 9060 XT", "gfx1200", "0000:00:00.0", 16 << 30, (4 + 32) << 20
    )
    seen = driver.observe(card)
    assert (seen.graphics_hz, seen.memory_hz, seen.power_w, seen.temperature_c) == (2.78e9, 1.124e9, 141.0, 61.0)
    assert seen.throttle == () and seen.processes == (Process(78, "python", 1 << 30, True),)
    planned = clocks.plan(driver, card)
    assert planned.found == "AUTO"
    assert clocks.engage(driver, card, planned).locked
    assert library.level == 5  # amdsmi.h: AMDSMI_DEV_PERF_LEVEL_STABLE_PEAK
    assert clocks.restore(driver, card, "AUTO") is None
    assert library.level == 0
    library.refuse_set = True
    refused = clocks.engage(driver, card, planned)
    assert not refused.locked and "Permission Denied" in str(refused.why)
    with pytest.raises(UndecidedError, match=r"amdsmi_set_gpu_perf_level: .*NO_PERM"):
        driver.set_level(card, "STABLE_PEAK")


def functions(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name.startswith("amdsmi_") and callable(value)}


def parameters(function: Any) -> list[str]:
    """Those that must be given."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]


def test_names_and_signatures_are_the_packages(wheel: tuple[ModuleType, Library], fake: ModuleType) -> None:
    amdsmi, _ = wheel
    ours = functions(fake)
    assert len(ours) > 12
    for name, function in ours.items():
        assert parameters(function) == parameters(getattr(amdsmi, name)), name
    for name, value in vars(fake).items():
        if name.startswith("AmdSmi") and hasattr(value, "__members__"):
            assert set(value.__members__) <= set(getattr(amdsmi, name).__members__), name
    assert issubclass(amdsmi.AmdSmiLibraryException, amdsmi.AmdSmiException)
    assert {level for level in clocks.RESTORABLE} <= set(amdsmi.AmdSmiDevPerfLevel.__members__)


def fields(value: Any, where: str = "") -> set[str]:
    if isinstance(value, dict):
        return {part for key, inner in value.items() for part in {f"{where}.{key}"} | fields(inner, f"{where}.{key}")}
    return fields(value[0], f"{where}[]") if isinstance(value, list) and value else set()


def test_fields_are_the_packages(wheel: tuple[ModuleType, Library], fake: ModuleType) -> None:
    amdsmi, _ = wheel
    answers = {}
    for module in (amdsmi, fake):
        handle = module.amdsmi_get_processor_handles()[0]
        more = {
            "amdsmi_get_gpu_memory_total": (module.AmdSmiMemoryType.VRAM,),
            "amdsmi_get_clock_info": (module.AmdSmiClkType.GFX,),
            "amdsmi_get_temp_metric": (module.AmdSmiTemperatureType.HOTSPOT, module.AmdSmiTemperatureMetric.CURRENT),
            "amdsmi_set_gpu_perf_level": (module.AmdSmiDevPerfLevel.AUTO,),
        }
        for name in functions(fake):
            if name not in ("amdsmi_init", "amdsmi_get_processor_handles"):
                takes_card = parameters(getattr(module, name))
                arguments = (handle, *more.get(name, ())) if takes_card else ()
                answers[module.__name__, name] = getattr(module, name)(*arguments)
    told = 0
    for name in {name for module, name in answers if module == "amdsmi_fake"}:
        real, ours = answers["amdsmi_wheel", name], answers["amdsmi_fake", name]
        assert type(real) is type(ours), name
        assert fields(ours) <= fields(real), name
        told += len(fields(ours))
    assert told > 12


def test_a_name_that_the_package_lacks_is_noticed(wheel: tuple[ModuleType, Library], fake: ModuleType) -> None:
    """The fixture that fails the checks above."""
    assert not hasattr(wheel[0], "amdsmi_get_gpu_perf_levels")
    assert not fields({"market_name": 1, "market": 2}) <= fields({"market_name": 1})
