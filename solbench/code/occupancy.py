"""How many waves of a kernel can be resident on gfx12, and what limits them.

A work-group runs on one work-group processor: two compute units of two SIMDs each, or on one compute unit where the
code object is in CU mode. Sources:

- 16 waves a SIMD; 1536 VGPRs of a lane a SIMD in wave32 and 768 in wave64, allocated in steps of 24 and 12; at most
  256 a wave; a work-group of several waves takes one of 32 barriers of a work-group processor, 16 of a compute unit:
  LLVM, ``AMDGPUBaseInfo.cpp`` (``getTotalNumVGPRs``, ``getVGPRAllocGranule``, ``getMaxWorkGroupsPerCU``).
- 64 KiB of LDS a work-group, 128 KiB a work-group processor, 64 KiB a compute unit: "RDNA4 Instruction Set Architecture
  Reference Guide" of AMD, chapter 12. Allocated in steps of 1 KiB: Mesa, ``ac_gpu_info.c`` (``lds_alloc_granularity``).
- 1024 threads a work-group: HSA's limit for AMD's cards, and what LLVM compiles for.

SGPRs never limit: every wave has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

WAVES_PER_SIMD = 16
VGPRS_PER_SIMD = {32: 1536, 64: 768}
VGPR_STEP = {32: 24, 64: 12}
MAX_VGPRS = 256
MAX_THREADS = 1024
LDS_BYTES_PER_GROUP = 64 << 10
LDS_BYTES_PER_UNIT = 64 << 10
LDS_STEP_BYTES = 1 << 10
SIMDS_PER_UNIT = 2
BARRIERS_PER_UNIT = 16


@dataclass(frozen=True)
class Occupancy:
    """Resident waves of one kernel. ``waves_per_simd`` is the mean over the SIMDs, rounded down, at most 16.

    Each ``by_...`` is the number of work-groups that a work-group processor (or, in CU mode, a compute unit) holds as
    far as that resource goes, None where it sets no limit; ``groups`` is the least. ``limited_by``: the resources that
    set it; empty if the kernel cannot be launched at all, and ``groups`` is 0.
    """

    waves_per_group: int
    vgprs_allocated: int
    lds_bytes_allocated: int
    by_slots: int
    by_vgprs: int
    by_lds: int | None
    by_barriers: int | None
    groups: int
    waves_per_simd: int
    limited_by: tuple[str, ...]


def occupancy(threads: int, vgprs: int, lds_bytes: int, wave_size: int, wgp_mode: bool) -> Occupancy:
    """Occupancy of a kernel launched with work-groups of ``threads``, its LDS static and dynamic together."""
    units = 2 if wgp_mode else 1
    simds = SIMDS_PER_UNIT * units
    waves = max(1, -(-threads // wave_size))
    step = VGPR_STEP[wave_size]
    vgprs_allocated = -(-max(vgprs, 1) // step) * step
    lds_allocated = -(-lds_bytes // LDS_STEP_BYTES) * LDS_STEP_BYTES
    by_registers = min(WAVES_PER_SIMD, VGPRS_PER_SIMD[wave_size] // vgprs_allocated)
    counts = {
        "wave slots": WAVES_PER_SIMD * simds // waves,
        # Waves of a work-group are dealt out to the SIMDs evenly, so that all SIMDs fill together.
        "VGPRs": by_registers * simds // waves,
        "LDS": LDS_BYTES_PER_UNIT * units // lds_allocated if lds_allocated else None,
        "barriers": BARRIERS_PER_UNIT * units if waves > 1 else None,
    }
    launches = threads <= MAX_THREADS and lds_bytes <= LDS_BYTES_PER_GROUP and vgprs <= MAX_VGPRS
    groups = min(count for count in counts.values() if count is not None) if launches else 0
    limits = tuple(name for name, count in counts.items() if count == groups) if launches else ()
    return Occupancy(
        waves,
        vgprs_allocated,
        lds_allocated,
        counts["wave slots"] or 0,
        counts["VGPRs"] or 0,
        counts["LDS"],
        counts["barriers"],
        groups,
        min(WAVES_PER_SIMD, groups * waves // simds),
        limits,
    )
