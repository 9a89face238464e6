"""What a HIP library's code object declares, looked at before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from elf_files import elf_with_section, hip_bundle

from solbench.code import occupancy
from solbench.evaluate import gate

CODE = (Path(__file__).resolve().parents[1] / "code" / "objects" / "product.hsaco").read_bytes()
LIBRARY = elf_with_section(".hip_fatbin", hip_bundle("gfx1200", code=CODE))


def test_a_kernel_within_the_limits() -> None:
    assert gate.refused_library(LIBRARY, "gfx1200") is None


def test_more_than_a_card_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has 47 VGPRs and no LDS; here is a card with fewer of either."""
    monkeypatch.setattr(occupancy, "MAX_VGPRS", 16)
    why = gate.refused_library(LIBRARY, "gfx1200")
    assert why is not None and why.startswith("product: would not launch: ") and why.endswith("over the limit of 16")
    monkeypatch.setattr(occupancy, "LDS_BYTES_PER_GROUP", -1)
    assert gate.refused_library(LIBRARY, "gfx1200") == (
        "product: would not launch: 0 bytes of LDS, over the limit of -1"
    )


def test_device_code_that_cannot_be_read() -> None:
    broken = elf_with_section(".hip_fatbin", hip_bundle("gfx1200", code=CODE[:3000]))
    assert str(gate.refused_library(broken, "gfx1200")).startswith("its device code cannot be read: device code 0")


def test_code_for_another_card_is_not_looked_at() -> None:
    assert gate.refused_library(elf_with_section(".hip_fatbin", hip_bundle("gfx942", code=CODE)), "gfx942") is None
