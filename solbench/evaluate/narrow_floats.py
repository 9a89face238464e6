"""bfloat16 and the float8 formats as NumPy bit patterns: exact decoding, encoding by round to nearest even.

Formats: IEEE 754's rules with other widths for bfloat16 and float8 e5m2; "FP8 Formats for Deep Learning" (Micikevicius
et al., 2022) for e4m3, which has NaN and no infinity; "8-bit Numerical Formats for Deep Neural Networks" (Noune et al.,
2022) for the two ``fnuz`` formats, whose only special value is NaN in the place of -0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = Any


class RangeError(Exception):
    """A value beyond the largest one of a format: what it becomes depends on the card."""


@dataclass(frozen=True)
class Bfloat16:
    """The upper half of a float32, in uint16."""

    name: str = "bf16"

    def decode(self, data: Array) -> Array:
        """float32 of uint16 patterns of any shape; exact."""
        return (np.asarray(data).astype(np.uint32) << 16).view(np.float32)

    def encode(self, values: Array, *, nearest: bool = True) -> Array:
        """uint16 patterns of numbers of any type; ``nearest`` false cuts off. Integers pass through float32."""
        values = np.asarray(values)
        with np.errstate(over="ignore", invalid="ignore"):
            single = _to_odd(values) if values.dtype == np.float64 else values.astype(np.float32)
        bits = single.view(np.uint32)
        if nearest:
            bits = bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)
        return np.where(np.isnan(single), 0x7FC0, bits >> 16).astype(np.uint16)


@dataclass(frozen=True)
class Float8:
    """One sign bit, ``8 - 1 - mantissa`` exponent bits, in uint8; ``finite`` is the code of the largest number.

    ``nan`` is a code of NaN; ``infinity`` the code of infinity or None; ``signed_zero`` whether 0x80 is -0.
    """

    name: str
    mantissa: int
    bias: int
    finite: int
    nan: int
    infinity: int | None
    signed_zero: bool

    @cached_property
    def _magnitudes(self) -> Array:
        """float64 of the codes 0 to ``finite``, which rise with the code."""
        code = np.arange(self.finite + 1)
        exponent, fraction = code >> self.mantissa, (code & ((1 << self.mantissa) - 1)) / (1 << self.mantissa)
        normal = (1 + fraction) * 2.0 ** (exponent - self.bias)
        return np.where(exponent == 0, fraction * 2.0 ** (1 - self.bias), normal)

    @cached_property
    def _table(self) -> Array:
        """float32 of all 256 codes."""
        half = np.full(128, np.nan)
        half[: self.finite + 1] = self._magnitudes
        if self.infinity is not None:
            half[self.infinity] = np.inf
        both = np.concatenate([half, -half])
        if not self.signed_zero:
            both[0x80] = np.nan
        return both.astype(np.float32)

    def decode(self, data: Array) -> Array:
        """float32 of uint8 patterns of any shape; exact."""
        return self._table[np.asarray(data)]

    def encode(self, values: Array, *, nearest: bool = True) -> Array:
        """uint8 patterns of numbers of any type, to the nearest, ties to the even code; NaN stays NaN.

        :class:`RangeError` for a value that is nearer to something beyond the largest number, infinity included: one
        card makes the largest number of it, another infinity or NaN.
        """
        if not nearest:
            raise RangeError(f"{self.name}: only rounding to nearest is known")
        numbers = np.asarray(values).astype(np.float64)
        size = np.abs(numbers)
        known = self._magnitudes
        # Half a step beyond the largest: there a tie goes to the even code, which is the next one if ours is odd.
        limit = known[-1] + (known[-1] - known[-2]) / 2
        beyond = size >= limit if self.finite & 1 else size > limit
        if np.any(beyond):
            raise RangeError(f"{self.name}: a value beyond {known[-1]:g}, which cards convert in different ways")
        middles = (known[1:] + known[:-1]) / 2
        code = np.searchsorted(middles, np.where(np.isnan(size), 0, size), side="left")
        tie = size == middles[np.minimum(code, len(middles) - 1)]
        code = np.where(tie & (code & 1 == 1), code + 1, code)
        negative = np.signbit(numbers) & (self.signed_zero | (code > 0))
        return np.where(np.isnan(size), self.nan, code | (negative.astype(code.dtype) << 7)).astype(np.uint8)


def _to_odd(values: Array) -> Array:
    """float32 of float64, rounded so that rounding it again to fewer bits equals rounding once.

    Round to odd: cut off, and set the last bit if anything was cut off (Boldo and Melquiond, "Emulation of a FMA and
    Correctly Rounded Sums", 2008).
    """
    single = values.astype(np.float32)
    inexact = (single != values) & ~np.isnan(values)
    above = inexact & (np.abs(single.astype(np.float64)) > np.abs(values))
    cut = np.where(above, np.nextafter(single, np.float32(0)), single)
    return (cut.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)


BF16 = Bfloat16()
# By the names that Triton's types have.
FORMATS: dict[str, Bfloat16 | Float8] = {
    form.name: form
    for form in (
        BF16,
        Float8("fp8e5", 2, 15, 0x7B, 0x7E, 0x7C, True),
        Float8("fp8e4nv", 3, 7, 0x7E, 0x7F, None, True),
        Float8("fp8e5b16", 2, 16, 0x7F, 0x80, None, False),
        Float8("fp8e4b8", 3, 8, 0x7F, 0x80, None, False),
    )
}
