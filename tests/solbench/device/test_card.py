"""What the common interface says of cards, over a scripted amdsmi and a scripted NVML."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from device_fakes import UUIDS, Cards, FakeNvml, start

from solbench.device import card as cards_module
from solbench.device import rocm
from solbench.device.card import (
    Absent,
    Card,
    Observation,
    Process,
    find,
    flush_bytes,
    foreign,
    refuse_busy,
    refuse_override,
)
from solbench.device.cuda import Cuda
from solbench.errors import InputError, UndecidedError, UnsupportedError


def test_a_rocm_card_and_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Cards(tmp_path)
    fake.script(processes=[[77, "Xorg", 5 << 20], [78, "python", 1 << 30]])
    fake.script_all(computing=[78])
    driver, (card,) = start(fake, monkeypatch)
    assert card == Card("rocm", UUIDS[0], "AMD Radeon RX 9060 XT", "gfx1200", "0000:03:00.0", 16 << 30, (4 + 32) << 20)
    seen = driver.observe(card)
    # 0xFFFFFFFF and N/A mean "not told", which is None and no number.
    assert (seen.graphics_hz, seen.memory_hz, seen.power_w, seen.temperature_c) == (2.78e9, None, 141.0, 61.0)
    assert seen.throttle == () and seen.level == "AUTO"
    assert seen.processes == (Process(77, "Xorg", 5 << 20, False), Process(78, "python", 1 << 30, True))
    fake.script(throttled=True)
    assert driver.observe(card).throttle == ("throttled",)
    fake.script_all(compute_untold=True)
    assert all(process.compute for process in driver.observe(card).processes or ())


def test_the_card_is_found_by_uuid_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, both = start(Cards(tmp_path, 2), monkeypatch)
    assert find((driver,), UUIDS[1].upper()) == (driver, both[1])
    with pytest.raises(InputError, match="no card here has this UUID"):
        find((driver,), "1")
    with pytest.raises(InputError, match="name one"):
        find((driver,), None)
    with pytest.raises(UnsupportedError, match="no GPU"):
        find((), None)


def test_cards_that_share_a_uuid_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card without a serial number has the UUID of its kind."""
    fake = Cards(tmp_path, 2)
    fake.script(1, uuid=UUIDS[0])
    with pytest.raises(UndecidedError, match="two cards here answer to one UUID"):
        start(fake, monkeypatch)


def test_a_card_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Cards(tmp_path, 2)
    driver, (_, second) = start(fake, monkeypatch)
    fake.script_all(cards=[])
    driver._handles.clear()
    with pytest.raises(UndecidedError, match="this card is gone"):
        driver.observe(second)


@pytest.mark.parametrize(
    ("arch", "told", "runtime", "expected"),
    [
        ("gfx1200", (4 + 32) << 20, None, 72 << 20),  # DESIGN §6: at least 72 MiB
        ("gfx1200", None, None, 72 << 20),  # amdsmi does not tell: the table
        ("gfx1200", 4 << 20, None, 72 << 20),  # amdsmi forgets the Infinity Cache: the table
        ("gfx1200", 48 << 20, None, 96 << 20),  # another card of the name: the driver
        ("gfx942", None, None, 2 * (32 + 256) << 20),
        ("sm_90", None, 50 << 20, 120 << 20),
        ("sm_80", None, 40 << 20, 80 << 20),  # no table: the runtime
    ],
)
def test_a_flush_covers_the_largest_word(arch: str, told: int | None, runtime: int | None, expected: int) -> None:
    assert flush_bytes(Card("rocm", "u", "n", arch, "p", None, told), runtime) == expected


def test_nothing_says_how_much_to_flush() -> None:
    with pytest.raises(UnsupportedError, match="sm_80: cache sizes unknown"):
        flush_bytes(Card("cuda", "u", "n", "sm_80", "p", None, None))


def test_an_override_is_refused() -> None:
    refuse_override({})
    refuse_override({"HSA_OVERRIDE_GFX_VERSION": ""})
    with pytest.raises(InputError, match="HSA_OVERRIDE_GFX_VERSION: makes ROCm run"):
        refuse_override({"HSA_OVERRIDE_GFX_VERSION": "11.0.0"})


def test_a_desktop_is_seen_and_a_computing_stranger_is_refused() -> None:
    card = Card("rocm", "u", "n", "gfx1200", "p", None, None)
    desktop, stranger = Process(7, "Xorg", 1, False), Process(8, "train", 1, True)
    seen = Observation(None, None, None, None, None, None, (desktop, stranger))
    assert list(foreign(seen, {8})) == [desktop]
    refuse_busy(card, seen, {8})
    with pytest.raises(UndecidedError, match=r"u: busy with train \(pid 8\)"):
        refuse_busy(card, seen, {7})
    refuse_busy(card, Observation(None, None, None, None, None, None, None), ())


def test_what_keeps_a_platform_away_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Cards(tmp_path)
    fake.script_all(no_driver=True)
    with pytest.raises(UnsupportedError, match=r"amdsmi_init: .*is the amdgpu kernel driver loaded"):
        start(fake, monkeypatch)
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(UnsupportedError, match=r"amdsmi cannot be loaded: .*solbench\[rocm\]"):
        rocm.start()
    found, absent = cards_module.drivers()
    assert {missing.platform for missing in absent} >= {"rocm"} and "rocm" not in {driver.platform for driver in found}


@pytest.mark.parametrize("target", ["nonsense", "", "gfx", "gfx1200 ", "sm_x", "SM_90"])
def test_what_is_no_target_is_bad_input(target: str) -> None:
    with pytest.raises(InputError, match=r"--target .*neither cpu nor an architecture, such as gfx1200 or sm_90"):
        cards_module.drivers_for(target)


@pytest.mark.parametrize("target", ["gfx1200", "gfx90a", "sm_90", "sm_90a"])
def test_a_target_without_a_driver(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(cards_module, "drivers", lambda: ((), (Absent("rocm", "none"), Absent("cuda", "no driver"))))
    with pytest.raises(UnsupportedError, match=rf"--target {target}: no card here \(rocm: none; cuda: no driver\)"):
        cards_module.drivers_for(target)


def test_amdsmi_without_its_library_says_so_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real package, where no ROCm is installed: it prints two lines and raises KeyError."""
    try:
        importlib.metadata.distribution("amdsmi")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the amdsmi package is not installed")
    if Path("/opt/rocm/lib/libamd_smi.so").exists():
        pytest.skip("ROCm is installed here")
    for name in [name for name in sys.modules if name.partition(".")[0] == "amdsmi"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UnsupportedError, match=r"amdsmi cannot be loaded: .*libamd_smi\.so"):
        rocm.start()
    assert capsys.readouterr().out == ""


def cuda(nvml: Any) -> tuple[Cuda, Card]:
    driver = Cuda(nvml, nvml.NVMLError)
    return driver, driver.cards()[0]


def test_a_cuda_card_and_what_it_does() -> None:
    driver, card = cuda(FakeNvml(reasons=0x1 | 0x4 | 0x40))
    assert card == Card(
        "cuda", "GPU-8f9a2c10-1111-2222-3333-444455556666", "NVIDIA H200", "sm_90", "0000:3b:00.0", 141 << 30, None
    )
    seen = driver.observe(card)
    assert (seen.graphics_hz, seen.memory_hz, seen.power_w, seen.temperature_c) == (1.98e9, 3.201e9, 120.5, None)
    assert seen.throttle == ("power cap", "temperature (hardware)")
    assert [(process.pid, process.compute) for process in seen.processes or ()] == [(os.getpid(), True), (1, False)]
    assert cuda(FakeNvml(reasons=1))[0].observe(card).throttle == ()
    assert cuda(FakeNvml(processes=False))[0].observe(card).processes is None


def test_cuda_clocks_are_not_touched() -> None:
    driver, card = cuda(FakeNvml())
    assert driver.level(card) is None
    with pytest.raises(UnsupportedError, match="left as they are"):
        driver.set_level(card, "STABLE_PEAK")
