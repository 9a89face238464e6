"""DPP: the first source of a vector instruction comes from another lane.

Controls: "RDNA4 Instruction Set Architecture Reference Guide", sections 6.6 (DPP16 and DPP8). A source lane that is
outside of the row, or off without fetch-inactive, gives 0 with bound_ctrl, else the lane is not written.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from solbench.gfx12.access import Reader
from solbench.gfx12.integers import Array
from solbench.gfx12.operands import Modifiers
from solbench.gfx12.results import Writer
from solbench.gfx12.state import LANES, State, Unsupported

_LANES = np.arange(LANES)
_ROW = _LANES & 16
_WITHIN = _LANES & 15
_CONTROLS: Final = frozenset({"dpp8", "quad_perm", "row_shl", "row_shr", "row_ror", "row_share", "row_xmask"})
_FLAGS: Final = frozenset({"row_mirror", "row_half_mirror"})


def has_dpp(modifiers: Modifiers) -> bool:
    """Whether the instruction is a DPP one."""
    return bool(_CONTROLS & modifiers.values.keys() or _FLAGS & modifiers.flags or "row_mask" in modifiers.values)


def source_lanes(modifiers: Modifiers) -> tuple[Array, Array]:
    """The lane that each lane reads, and whether there is one."""
    always: Array = np.ones(LANES, bool)
    for name in ("dpp8", "quad_perm"):
        if name in modifiers.values:
            listed = np.array([int(n) for n in re.findall(r"\d+", modifiers.values[name])])
            group = len(listed)
            return _LANES // group * group + listed[_LANES % group], always
    if "row_mirror" in modifiers.flags:
        return _ROW | (15 - _WITHIN), always
    if "row_half_mirror" in modifiers.flags:
        return _LANES & ~7 | (7 - (_LANES & 7)), always
    for name in ("row_shl", "row_shr", "row_ror", "row_share", "row_xmask"):
        if name not in modifiers.values:
            continue
        by = modifiers.number(name)
        if name == "row_share":
            return _ROW | by, always
        if name == "row_xmask":
            return _ROW | (_WITHIN ^ by), always
        if name == "row_ror":
            return _ROW | ((_WITHIN - by) & 15), always
        within = _WITHIN + by if name == "row_shl" else _WITHIN - by
        inside = (within >= 0) & (within < 16)
        return np.where(inside, _ROW | (within & 15), _LANES), inside
    raise Unsupported("a DPP control that is not known")


def dpp_source(modifiers: Modifiers, read: Reader) -> Reader:
    """The reader of a DPP instruction's first source."""
    source, inside = source_lanes(modifiers)
    fetches = modifiers.number("fi") == 1
    everywhere = bool(inside.all())
    outside = ~inside

    def moved(m: State) -> Any:
        value = read(m)
        if value.shape[1] == 1:
            value = np.broadcast_to(value, (m.count, LANES))
        found = value[:, source]
        if not m.full and not fetches:
            found[~m.mask[:, source]] = 0
        if not everywhere:
            found[:, outside] = 0
        return found

    return moved


def written_lanes(modifiers: Modifiers, write: Writer) -> Writer:
    """The writer of a DPP instruction: rows and banks that are masked keep what they hold, and so do lanes without a
    source where bound_ctrl does not say that they read 0."""
    rows, banks = modifiers.number("row_mask", 0xF), modifiers.number("bank_mask", 0xF)
    on = (rows >> (_LANES >> 4) & 1 == 1) & (banks >> (_WITHIN >> 2) & 1 == 1)
    zero = modifiers.number("bound_ctrl") == 1 or "dpp8" in modifiers.values
    source, inside = source_lanes(modifiers)
    if not zero:
        on &= inside
    fetches = modifiers.number("fi") == 1
    if on.all() and (zero or fetches):
        return write

    def masked(m: State, value: Any) -> None:
        lanes = m.mask & on
        if not (zero or fetches):
            lanes &= m.mask[:, source]
        with m.narrowed(lanes):
            write(m, value)

    return masked
