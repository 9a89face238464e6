"""The instruction table of gfx12: what each scalar and vector instruction computes, by base mnemonic.

To be read beside AMD's "RDNA4 Instruction Set Architecture Reference Guide", chapter 16: one module an encoding family.
Memory, branches, waits, barriers, mode registers and register indexing by M0 are the executor's; matrix instructions
are in :mod:`solbench.gfx12.wmma`, what atomics do to memory in :mod:`solbench.gfx12.atomics`. A name that is in none of
them is not supported, and a program that has it cannot be judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from solbench.gfx12.compares import SOPC, VOPC
from solbench.gfx12.lanes import LANES
from solbench.gfx12.op import Op as Op
from solbench.gfx12.op import table
from solbench.gfx12.sop1 import SOP1
from solbench.gfx12.sop2 import SOP2, SOPK
from solbench.gfx12.vop1 import VOP1
from solbench.gfx12.vop2 import VOP2
from solbench.gfx12.vop3 import VOP3
from solbench.gfx12.vop3p import VOP3P

_FAMILIES: Final = (SOP1, SOP2, SOPK, SOPC, VOP1, VOP2, VOPC, VOP3, VOP3P, LANES)
OPS: Final[Mapping[str, Op]] = table(entry for family in _FAMILIES for entry in family.values())
