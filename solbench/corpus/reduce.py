"""A small instance of a workload, for controls that run the reference many times.

Axes are halved until the tensors are small: first those that workloads bind, always the largest. What the workload
fixes stays: axes of inputs whose numbers are listed, axes that a scalar input repeats (top-k, a number of heads),
parity, multiples of 32, small axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solbench.errors import InputError
from solbench.model.definition import AxisConst, AxisExpr, AxisVar, Definition, resolve_shape
from solbench.model.expression import names_in
from solbench.model.workload import Constant, ScalarInput, Values, Workload

LIMIT_ELEMENTS = 2**20
# A constant axis belongs to the problem; only plainly large feature sizes are scaled.
_LARGE_CONSTANT = 1024


@dataclass(frozen=True)
class Instance:
    """A workload with its axes resolved; ``note`` says what was reduced, null if nothing was."""

    definition: Definition
    workload: Workload
    axes: dict[str, int]
    note: str | None = None


def reduced(definition: Definition, workload: Workload, limit: int = LIMIT_ELEMENTS) -> Instance:
    """The workload at sizes with at most ``limit`` elements in all inputs and outputs, as far as its rules allow."""
    axes = workload.validate_against(definition, f"{definition.name}: {workload.uuid}")
    best = Instance(definition, workload, axes)
    sizes = {name: axes[name] for name, axis in definition.axes.items() if isinstance(axis, (AxisConst, AxisVar))}
    free = {name for name in sizes if name not in _fixed_axes(definition, workload, axes)}
    while elements(definition, best.axes) > limit:
        halves = {name: half for name in free if (half := _half(sizes[name], definition, name)) is not None}
        if not halves:
            break
        name = max(halves, key=lambda name: (isinstance(definition.axes[name], AxisVar), sizes[name], name))
        sizes[name] = halves[name]
        try:
            best = _with_sizes(definition, workload, sizes, axes)
        except InputError:
            free.discard(name)
            sizes[name] = best.axes[name]
    return best


def elements(definition: Definition, axes: Mapping[str, int]) -> int:
    """Elements of all inputs and outputs together."""
    total = 0
    for spec in (*definition.inputs.values(), *definition.outputs.values()):
        count = 1
        for extent in resolve_shape(spec, dict(axes)):
            count *= extent
        total += count
    return total


def _half(size: int, definition: Definition, name: str) -> int | None:
    if size < 16 or (isinstance(definition.axes[name], AxisConst) and size <= _LARGE_CONSTANT):
        return None
    half = size // 2
    if size % 32 == 0 and (half % 32 == 0 or _is_divided(definition, name)):
        return half if half % 32 == 0 else None
    return half | 1 if size % 2 else half & ~1


def _is_divided(definition: Definition, name: str) -> bool:
    """Whether an expression divides the axis (blocks of a quantised format, halves of a head)."""
    expressions = [axis.expression for axis in definition.axes.values() if isinstance(axis, AxisExpr)]
    return any(name in names_in(text, name) and ("/" in text or "%" in text) for text in expressions)


def _fixed_axes(definition: Definition, workload: Workload, axes: Mapping[str, int]) -> set[str]:
    fixed: set[str] = set()
    listed: set[float] = set()
    rounds = [workload.inputs, *(stress.inputs for stress in workload.stress_rounds)]
    for name, generator in ((name, generator) for group in rounds for name, generator in group.items()):
        if isinstance(generator, Values):
            fixed.update(definition.inputs[name].shape or ())
            listed.update(generator.values)
        if isinstance(generator, (Constant, ScalarInput)) and definition.inputs[name].dtype.startswith("int"):
            listed.add(generator.value)
    return fixed | {name for name, size in axes.items() if size in listed}


def _with_sizes(
    definition: Definition, workload: Workload, sizes: Mapping[str, int], full: Mapping[str, int]
) -> Instance:
    fields = definition.as_dict()
    for name, axis in fields["axes"].items():
        if axis["type"] == "const":
            axis["value"] = sizes[name]
    smaller = Definition.load(fields, definition.name)
    bound = {name: sizes[name] for name in workload.axes}
    small = Workload.load({**workload.as_dict(), "axes": bound}, workload.uuid)
    axes = small.validate_against(smaller, f"{definition.name}: {workload.uuid}")
    changed = [f"{name} {full[name]} -> {size}" for name, size in sizes.items() if size != full[name]]
    return Instance(smaller, small, axes, f"reduced: {', '.join(changed)}" if changed else None)
