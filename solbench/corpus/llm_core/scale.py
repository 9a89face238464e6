"""One common scale a Definition: the largest at which all nine workloads fit, and the least that tells them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import prod

from solbench.corpus.llm_core.formula import compile_formula
from solbench.corpus.llm_core.rules import FormulaText, Generation, Rule, Slot, Target, Tensor
from solbench.model.definition import DTYPE_BITS

GIB = 2**30
# Two slots' values differ by at least scale/24 - 1 (1/24 is the least difference of two ratios). Rounding to 16 and a
# division by 16 hide differences below 16 + 16, pages of 128 below 128: from here on none of our rules can collide.
DISTINCT_FROM = 8192


@dataclass(frozen=True)
class Envelope:
    """Bytes of one workload: its interface and, beside it, the live intermediates of the eager reference."""

    input_bytes: int
    output_bytes: int
    temporary_bytes: int
    largest_tensor_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Inputs, outputs and temporaries alive at once."""
        return self.input_bytes + self.output_bytes + self.temporary_bytes


def slot_axes(rule: Rule, slot: Slot, scale: int) -> dict[str, int]:
    """Values of the Definition's ``var`` axes in one slot."""
    names = slot.names(scale)
    return {axis: _value(text, names) for axis, text in rule.axes[slot.sizes].items()}


def tensor_shapes(rule: Rule, axes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shape of every input and output, by name, of a workload with these ``var`` axes."""
    names = _all_axes(rule, axes)
    return {
        name: tuple(_value(text, names) for text in tensor.shape)
        for name, tensor in {**rule.inputs, **rule.outputs}.items()
    }


def envelope(rule: Rule, axes: Mapping[str, int]) -> Envelope:
    """What a workload with these ``var`` axes needs."""
    names = _all_axes(rule, axes)
    inputs = [_tensor_bytes(tensor, names) for tensor in rule.inputs.values()]
    outputs = [_tensor_bytes(tensor, names) for tensor in rule.outputs.values()]
    temporary = max(_value(text, names) for text in rule.temporary_bytes)
    return Envelope(sum(inputs), sum(outputs), temporary, max(inputs + outputs))


def fits(rule: Rule, slot: Slot, scale: int, target: Target, peak_bytes: int) -> bool:
    """Whether one slot's workload is sound at ``scale`` and within the target's and the class's limits."""
    axes = slot_axes(rule, slot, scale)
    if min(axes.values()) <= 0:
        return False
    names = _all_axes(rule, axes)
    if min(names.values()) <= 0 or any(_value(text, names) > limit for text, limit in rule.limits.items()):
        return False
    need = envelope(rule, axes)
    interface = target.max_interface_bytes
    return (
        need.peak_bytes <= peak_bytes
        and need.largest_tensor_bytes <= target.max_tensor_bytes
        and (interface is None or need.input_bytes + need.output_bytes <= interface)
    )


def largest_scale(rule: Rule, generation: Generation, target: Target, class_gib: int) -> int:
    """Largest scale at which all nine slots fit into the class, 0 where there is none.

    Every axis is non-decreasing in the scale and so is what it needs: bisection is exact.
    """
    peak = class_gib * GIB // generation.peak_divisor
    # The last slots are the largest and fail first.
    slots = generation.slots[::-1]
    low, high = 0, generation.largest_scale
    while low < high:
        middle = (low + high + 1) // 2
        if all(fits(rule, slot, middle, target, peak) for slot in slots):
            low = middle
        else:
            high = middle - 1
    return low


def minimum_distinct_scale(rule: Rule, generation: Generation) -> int:
    """Least scale from which on no two slots have equal ``var`` axes, by enumeration up to ``DISTINCT_FROM``."""
    last = 0
    for first, second in combinations(generation.slots, 2):
        rows = rule.axes[first.sizes], rule.axes[second.sizes]
        pairs = {(rows[0][axis], rows[1][axis]) for axis in rows[0]}
        if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            continue
        varying = frozenset(pair for pair in pairs if not all(isinstance(text, int) for text in pair))
        last = max(last, _last_equal(first, second, varying))
    return last + 1


@cache
def _last_equal(first: Slot, second: Slot, pairs: frozenset[tuple[FormulaText, FormulaText]]) -> int:
    for scale in range(DISTINCT_FROM - 1, 0, -1):
        names = first.names(scale), second.names(scale)
        if all(_value(a, names[0]) == _value(b, names[1]) for a, b in pairs):
            return scale
    return 0


def _all_axes(rule: Rule, axes: Mapping[str, int]) -> dict[str, int]:
    names = dict(axes)
    for axis, text in rule.derived.items():
        names[axis] = _value(text, names)
    return names


def _tensor_bytes(tensor: Tensor, names: Mapping[str, int]) -> int:
    elements = prod(_value(text, names) for text in tensor.shape)
    return -(-elements * DTYPE_BITS[tensor.dtype] // 8)


def _value(text: FormulaText, names: Mapping[str, int]) -> int:
    return text if isinstance(text, int) else compile_formula(text)(names)
