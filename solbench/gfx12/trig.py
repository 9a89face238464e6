"""V_TRIG_PREOP_F64: a slice of the bits of 2/pi, with which large arguments of sine and cosine are reduced."""

from __future__ import annotations

from typing import Final

import numpy as np

from solbench.gfx12.floats import exponent, ldexp
from solbench.gfx12.integers import F64, I32, U32, Array

_BITS: Final = 1201


def _two_over_pi() -> int:
    """The first 1201 bits after the point of 2/pi, by Machin's formula in integers."""
    guard = 64
    one = 1 << (_BITS + guard)

    def arctangent_of_inverse(n: int) -> int:
        term, total, k = one // n, one // n, 1
        while term:
            term //= n * n
            total += -(term // (2 * k + 1)) if k % 2 else term // (2 * k + 1)
            k += 1
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    return ((2 * one * one) // pi) >> guard


def _slices() -> Array:
    """The 53 bits from bit ``shift`` after the point on, for every shift the instruction can make."""
    value = _two_over_pi() << 53
    return np.array([(value << shift >> _BITS) & ((1 << 53) - 1) for shift in range(31 * 53 + 971)], dtype=F64)


_SLICES: Final = _slices()


def trig_preop(x: Array, segment: Array) -> Array:
    """The bits of 2/pi that segment ``segment`` (low 5 bits) asks for, scaled by their place; for float64 ``x`` past
    2**54 the place follows its exponent."""
    field = exponent(x)
    shift = (np.asarray(segment) & U32(31)).astype(I32) * I32(53)
    shift = np.where(field > 1077, shift + field - 1077, shift)
    scale = np.where(field >= 1968, 128 - 53 - shift, -53 - shift)
    return ldexp(_SLICES[np.minimum(shift, len(_SLICES) - 1)], scale)
