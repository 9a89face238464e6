"""Small kernels in assembly, of any groups and waves: arguments are addresses, in s[0:1] as the card gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solbench.gfx12.arena import Arena
from solbench.gfx12.launch import Launch
from solbench.gfx12.program import Program, load
from solbench.gfx12.run import Options, Outcome, run
from tests.solbench.gfx12.assembled import assemble

_TEXT = """.amdgcn_target "amdgcn-amd-amdhsa--gfx1200"
.text
.globl small
.p2align 8
.type small,@function
small:
{body}
s_endpgm
.Lend:
.size small, .Lend-small
.section .rodata,"a"
.p2align 6
.amdhsa_kernel small
.amdhsa_kernarg_size 32
.amdhsa_group_segment_fixed_size {lds}
.amdhsa_private_segment_fixed_size {scratch}
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_system_vgpr_workitem_id 2
.amdhsa_next_free_vgpr 64
.amdhsa_next_free_sgpr 100
.amdhsa_wavefront_size32 1
.amdhsa_float_denorm_mode_32 {denormals}
.amdhsa_float_denorm_mode_16_64 3
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1200
amdhsa.kernels:
  - .name: small
    .symbol: small.kd
    .kernarg_segment_size: 32
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
    .kernarg_segment_align: 8
    .wavefront_size: 32
    .sgpr_count: 100
    .vgpr_count: 64
    .max_flat_workgroup_size: 1024
    .args:
      - {{.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.name: y, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.offset: 16, .size: 4, .value_kind: hidden_block_count_x}}
      - {{.offset: 20, .size: 2, .value_kind: hidden_group_size_x}}
...
.end_amdgpu_metadata
"""
# v1 four times the thread within the grid; s[4:5] and s[6:7] the addresses of x and y; s8 the group.
PLACES = """s_load_b128 s[4:7], s[0:1], 0x0
s_mov_b32 s8, ttmp9
v_and_b32_e32 v0, 0x3ff, v0
s_lshl_b32 s9, s8, {shift}
v_add_nc_u32_e32 v1, s9, v0
v_lshlrev_b32_e32 v1, 2, v1
v_lshlrev_b32_e32 v2, 2, v0
s_wait_kmcnt 0x0
"""


def code_of(body: str, lds: int = 0, scratch: int = 0, denormals: int = 3) -> bytes:
    return assemble(_TEXT.format(body=body, lds=lds, scratch=scratch, denormals=denormals))


def program_of(body: str, lds: int = 0, scratch: int = 0) -> Program:
    return load(code_of(body, lds, scratch), None, "small", "small")


def ran(
    body: str, arrays: Mapping[str, Any], groups: int = 1, threads: int = 32, options: Options | None = None,
    lds: int = 0, scratch: int = 0, **flags: bool,
) -> Outcome:  # fmt: skip
    """Run ``PLACES`` and then ``body``; arrays change in place. ``flags``: of :meth:`Arena.add`, for all of them."""
    arena = Arena()
    addresses = [arena.add(name, array.reshape(-1).view(np.uint8), **flags) for name, array in arrays.items()]
    arguments = np.array(addresses, np.uint64).tobytes()
    text = PLACES.format(shift=threads.bit_length() - 1) + body
    launch = Launch((groups, 1, 1), (threads, 1, 1), arguments)
    return run(program_of(text, lds, scratch), launch, arena, options or Options(deadline_s=30.0))
