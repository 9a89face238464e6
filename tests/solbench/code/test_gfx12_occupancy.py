"""Occupancy on gfx12, by hand from the sizes that LLVM, Mesa and AMD's guide give, and as LLVM prints it."""

from __future__ import annotations

import pytest

from solbench.code.occupancy import occupancy


@pytest.mark.parametrize(
    ("vgprs", "waves"),
    # "; Occupancy" of LLVM for kernels of so many VGPRs in wave32.
    [(1, 16), (95, 16), (96, 16), (97, 12), (108, 12), (125, 10), (149, 9), (216, 7), (230, 6), (256, 5)],
)
def test_registers(vgprs: int, waves: int) -> None:
    assert occupancy(32, vgprs, 0, 32, True).waves_per_simd == waves


@pytest.mark.parametrize(
    ("threads", "vgprs", "lds", "groups", "waves", "limits"),
    [
        # 4 SIMDs of 16 waves: 64 waves, in groups of 4.
        (128, 32, 0, 16, 16, ("wave slots", "VGPRs")),
        # 128 KiB in steps of 1 KiB.
        (128, 32, 16_384, 8, 8, ("LDS",)),
        (128, 32, 16_385, 7, 7, ("LDS",)),
        (128, 32, 65_536, 2, 2, ("LDS",)),
        # One wave a group: no barrier, 24 KiB each.
        (32, 256, 24_576, 5, 1, ("LDS",)),
        # Two waves a group: 32 barriers.
        (64, 32, 0, 32, 16, ("wave slots", "VGPRs", "barriers")),
        # 32 waves a group, 264 registers each allocated: 5 a SIMD, 20 in all.
        (1024, 256, 0, 0, 0, ("VGPRs",)),
        (1024, 96, 0, 2, 16, ("wave slots", "VGPRs")),
        # What cannot be launched holds nothing.
        (1025, 32, 0, 0, 0, ()),
        (128, 257, 0, 0, 0, ()),
        (128, 32, 65_537, 0, 0, ()),
    ],
)
def test_work_groups(threads: int, vgprs: int, lds: int, groups: int, waves: int, limits: tuple[str, ...]) -> None:
    held = occupancy(threads, vgprs, lds, 32, True)
    assert (held.groups, held.waves_per_simd, held.limited_by) == (groups, waves, limits)


def test_a_compute_unit_alone_has_half_of_it() -> None:
    both, one = occupancy(128, 32, 16_384, 32, True), occupancy(128, 32, 16_384, 32, False)
    assert (both.groups, one.groups) == (8, 4)
    assert both.waves_per_simd == one.waves_per_simd == 8


def test_wave64_has_half_the_registers() -> None:
    # 768 in steps of 12.
    assert occupancy(64, 96, 0, 64, True).waves_per_simd == 8
    assert occupancy(64, 96, 0, 64, True).vgprs_allocated == 96
    assert occupancy(64, 97, 0, 64, True).waves_per_simd == 7
