"""Sets of positions along one axis of a tensor: the letters from which regions are spelled.

An :class:`Axis` never holds more than ``LARGEST_MASK`` bits, however long the axis is. Where a set has no exact form of
that size, the operations return a subset: every count that the bound takes from it is then too small, never too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

# Axes up to this extent may hold any set, as a bit mask; longer ones hold arithmetic progressions only.
LARGEST_MASK = 1 << 20
# Progressions and masks with more members than this are not walked one by one.
LARGEST_WALK = 1 << 13


@dataclass(frozen=True, slots=True)
class Axis:
    """Some of the positions 0 .. extent-1, in one of three forms.

    ``bits``: a mask. ``unplaced``: so many positions that nobody knows (an index without known contents). Neither: the
    progression ``start``, ``start + step``, ... of ``length`` members.
    """

    extent: int
    start: int = 0
    length: int = 0
    step: int = 1
    bits: int | None = None
    unplaced: int | None = None

    @property
    def count(self) -> int:
        """Number of positions."""
        if self.bits is not None:
            return self.bits.bit_count()
        return self.length if self.unplaced is None else self.unplaced

    @property
    def full(self) -> bool:
        """Every position of the axis."""
        return self.count >= self.extent

    @property
    def contiguous(self) -> bool:
        """One run without gaps."""
        return self.bits is None and self.unplaced is None and (self.step == 1 or self.length <= 1)

    @property
    def stop(self) -> int:
        """One past the last position (of a progression or mask)."""
        if self.bits is not None:
            return self.bits.bit_length()
        return self.start + self.step * (self.length - 1) + 1 if self.length else self.start

    def __contains__(self, position: int) -> bool:
        if self.bits is not None:
            return bool(self.bits >> position & 1)
        offset = position - self.start
        return 0 <= offset < self.step * self.length and offset % self.step == 0

    def __iter__(self) -> Iterator[int]:
        if self.bits is None:
            yield from range(self.start, self.start + self.step * self.length, self.step)
            return
        bits = self.bits
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low


def whole(extent: int) -> Axis:
    """Every position."""
    return Axis(extent, 0, extent)


def run(extent: int, start: int, stop: int, step: int = 1) -> Axis:
    """Positions start, start+step, ... below stop, cut to the axis."""
    if start < 0:
        start += -(start // step) * step
    length = max(0, (min(stop, extent) - start + step - 1) // step)
    return Axis(extent, start, length, step)


def unknown(extent: int, count: int) -> Axis:
    """``count`` positions (at most the extent) that depend on unknown contents."""
    count = max(0, min(count, extent))
    return whole(extent) if count == extent else Axis(extent, unplaced=count)


def masked(extent: int, bits: int) -> Axis:
    """The positions of the set bits, in the simplest form."""
    bits &= (1 << extent) - 1
    if not bits:
        return Axis(extent)
    low = (bits & -bits).bit_length() - 1
    length = bits.bit_length() - low
    if bits.bit_count() == length:
        return Axis(extent, low, length)
    return Axis(extent, bits=bits)


def of(extent: int, positions: Iterable[int]) -> Axis:
    """The given positions; negative ones count from the end. On an axis too long for a mask: their longest run."""
    wanted = sorted({p + extent if p < 0 else p for p in positions})
    wanted = [p for p in wanted if 0 <= p < extent]
    if not wanted:
        return Axis(extent)
    if extent <= LARGEST_MASK:
        buffer = bytearray((extent + 7) // 8)
        for position in wanted:
            buffer[position >> 3] |= 1 << (position & 7)
        return masked(extent, int.from_bytes(buffer, "little"))
    # Gathered rows of a huge table are all that matters here: their number is known, their places are given up.
    steps = {b - a for a, b in pairwise(wanted)}
    if len(steps) <= 1:
        return Axis(extent, wanted[0], len(wanted), steps.pop() if steps else 1)
    return Axis(extent, unplaced=len(wanted))


def mask_of(axis: Axis) -> int | None:
    """The set as a bit mask, or None where the axis is too long or the positions unknown."""
    if axis.bits is not None:
        return axis.bits
    if axis.unplaced is not None or axis.extent > LARGEST_MASK:
        return None
    return _progression(axis.length, axis.step) << axis.start


def _progression(length: int, step: int) -> int:
    """Bits 0, step, 2*step, ... (``length`` of them), by doubling."""
    if step == 1:
        return (1 << length) - 1
    bits, have = (1, 1) if length else (0, 0)
    while have < length:
        add = min(have, length - have)
        bits |= (bits & ((1 << (add * step)) - 1)) << (have * step)
        have += add
    return bits


def covers(outer: Axis, inner: Axis) -> bool:
    """Whether ``outer`` surely holds ``inner``. Unknown positions may coincide with any as numerous."""
    if outer.full or inner.count == 0:
        return True
    if inner.unplaced is not None:
        return outer.count >= inner.unplaced
    if outer.unplaced is not None or inner.count > outer.count:
        return False
    if outer.contiguous:
        first = inner.start if inner.bits is None else (inner.bits & -inner.bits).bit_length() - 1
        return outer.start <= first and inner.stop <= outer.stop
    if outer == inner:
        return True
    a, b = mask_of(outer), mask_of(inner)
    return a is not None and b is not None and b & ~a == 0


def union(a: Axis, b: Axis) -> Axis:
    """a or b; where that has no form, the larger of the two."""
    if covers(a, b):
        return a
    if covers(b, a):
        return b
    if a.contiguous and b.contiguous and max(a.start, b.start) <= min(a.stop, b.stop):
        start, stop = min(a.start, b.start), max(a.stop, b.stop)
        return Axis(a.extent, start, stop - start)
    first, second = mask_of(a), mask_of(b)
    if first is not None and second is not None:
        return masked(a.extent, first | second)
    if a.unplaced is None and b.unplaced is None and a.step == b.step and a.step > 1 and a.bits is None is b.bits:
        # Interleaved progressions: the two halves of a pair are the common case.
        first_run, second_run = (a, b) if a.start < b.start else (b, a)
        if a.step == 2 and second_run.start - first_run.start == 1 and first_run.length - second_run.length in (0, 1):
            return Axis(a.extent, first_run.start, a.length + b.length)
        if (a.start - b.start) % a.step == 0 and max(a.start, b.start) <= min(a.stop, b.stop) - 1 + a.step:
            start, stop = min(a.start, b.start), max(a.stop, b.stop)
            return Axis(a.extent, start, (stop - start + a.step - 1) // a.step, a.step)
    return a if a.count >= b.count else b


def intersection(a: Axis, b: Axis) -> Axis:
    """a and b; where that has no form, a subset."""
    if a.full:
        return b
    if b.full:
        return a
    if a.unplaced is not None or b.unplaced is not None:
        return Axis(a.extent, unplaced=max(0, a.count + b.count - a.extent))
    if b.contiguous:
        a, b = b, a
    if a.contiguous and b.bits is None:
        skipped = max(0, -((b.start - a.start) // b.step))
        return run(a.extent, b.start + skipped * b.step, min(a.stop, b.stop), b.step)
    first, second = mask_of(a), mask_of(b)
    if first is not None and second is not None:
        return masked(a.extent, first & second)
    return a if a == b else Axis(a.extent)


def complement(a: Axis) -> Axis:
    """Every position that is not in ``a``; where that has no form, a subset."""
    if a.unplaced is not None:
        return unknown(a.extent, a.extent - a.unplaced)
    if a.contiguous:
        if a.length == 0:
            return whole(a.extent)
        if a.start == 0 or a.stop == a.extent:
            return run(a.extent, a.stop, a.extent) if a.start == 0 else run(a.extent, 0, a.start)
    bits = mask_of(a)
    if bits is not None:
        return masked(a.extent, ~bits)
    if a.contiguous:
        before, after = run(a.extent, 0, a.start), run(a.extent, a.stop, a.extent)
        return before if before.count >= after.count else after
    return Axis(a.extent)


def image(axis: Axis, scale: int, offset: int, extent: int) -> Axis:
    """{scale*p + offset}, cut to 0 .. extent-1; scale > 0."""
    if axis.unplaced is not None:
        return unknown(extent, axis.unplaced if offset >= 0 and scale * (axis.extent - 1) + offset < extent else 0)
    if axis.bits is None:
        return run(extent, scale * axis.start + offset, scale * (axis.stop - 1) + offset + 1, scale * axis.step)
    if extent > LARGEST_MASK:
        # A short axis inside a long one: how many positions is known, their places are given up.
        return unknown(extent, axis.count if offset >= 0 and scale * (axis.extent - 1) + offset < extent else 0)
    if scale == 1:
        return masked(extent, axis.bits << offset if offset >= 0 else axis.bits >> -offset)
    return of(extent, (scale * position + offset for position in axis if 0 <= scale * position + offset < extent))


def preimage(axis: Axis, scale: int, offset: int, extent: int) -> Axis:
    """{p in 0 .. extent-1 : scale*p + offset in axis}; scale > 0."""
    if axis.full:
        first = max(0, -(offset // scale)) if offset < 0 else 0
        return run(extent, first, (axis.extent - 1 - offset) // scale + 1)
    if axis.unplaced is not None:
        # Of the positions that a slice shows, at least those that the hidden ones cannot account for.
        return unknown(extent, axis.unplaced - (axis.extent - extent)) if scale == 1 else Axis(extent)
    if axis.bits is None and axis.step == 1:
        return run(extent, -((offset - axis.start) // scale), (axis.stop - 1 - offset) // scale + 1)
    if axis.bits is not None and scale == 1 and extent <= LARGEST_MASK:
        return masked(extent, axis.bits >> offset if offset >= 0 else axis.bits << min(-offset, extent))
    if axis.count > LARGEST_WALK and scale == 1:
        return run(extent, axis.start - offset, axis.stop - offset, axis.step)
    if axis.count > LARGEST_WALK and axis.bits is None and axis.step == scale:
        return (
            run(extent, (axis.start - offset) // scale, (axis.stop - 1 - offset) // scale + 1)
            if (axis.start - offset) % scale == 0
            else Axis(extent)
        )
    if axis.count > LARGEST_WALK * 16:
        return Axis(extent)
    return of(extent, ((p - offset) // scale for p in axis if p >= offset and (p - offset) % scale == 0))


def spread(a: Axis, scale_a: int, b: Axis, scale_b: int, offset: int, extent: int) -> Axis:
    """{scale_a*p + scale_b*q + offset : p in a, q in b}, cut to the axis: what windows touch. Scales > 0."""
    if a.count == 0 or b.count == 0:
        return Axis(extent)
    if a.unplaced is not None or b.unplaced is not None:
        return unknown(extent, 1)
    if scale_a < scale_b:
        a, scale_a, b, scale_b = b, scale_b, a, scale_a
    if a.contiguous and b.contiguous:
        low = scale_a * a.start + scale_b * b.start + offset
        high = scale_a * (a.stop - 1) + scale_b * (b.stop - 1) + offset
        if scale_b == 1 and (b.length >= scale_a or a.length == 1):
            return run(extent, low, high + 1)
        if a.length == 1 or b.length == 1:
            return run(extent, low, high + 1, scale_b if a.length == 1 else scale_a)
        if scale_a % scale_b == 0 and b.length >= scale_a // scale_b:
            return run(extent, low, high + 1, scale_b)
    few, few_scale, many, many_scale = (a, scale_a, b, scale_b) if a.count <= b.count else (b, scale_b, a, scale_a)
    if few.count > LARGEST_WALK:
        return Axis(extent)
    result = Axis(extent)
    for position in few:
        result = union(result, image(many, many_scale, few_scale * position + offset, extent))
    return result
