"""Small instances of a workload: :func:`reduced` for controls, :func:`witness` for attestations.

For controls axes are halved until the tensors are small: first those that workloads bind, always the largest. What the
workload fixes stays: axes of inputs whose numbers are listed, axes that a scalar input repeats (top-k, a number of
heads), parity, multiples of 32, small axes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from solbench.errors import InputError
from solbench.model.definition import AxisConst, AxisExpr, AxisVar, Definition, resolve_shape
from solbench.model.expression import evaluate_int, names_in
from solbench.model.workload import Constant, ScalarInput, Values, Workload

LIMIT_ELEMENTS = 2**20
# A constant axis belongs to the problem; only plainly large feature sizes are scaled.
_LARGE_CONSTANT = 1024
# A witness keeps sizes below the first, and makes others no smaller than the second; those that references cut into
# blocks are long, and no block may become a single row.
KEPT, _SMALLEST, _PART = 16, 8, 4
_LONG, _SMALLEST_LONG = 512, 32


@dataclass(frozen=True)
class Instance:
    """A workload with its axes resolved; ``note`` says what was reduced, null if nothing was."""

    definition: Definition
    workload: Workload
    axes: dict[str, int]
    note: str | None = None

    @property
    def content(self) -> str:
        """All but the workload's name: instances of the same content are drawn and computed alike."""
        return self.workload.model_copy(update={"uuid": "-"}).model_dump_json() + str(self.axes)


def reduced(
    definition: Definition, workload: Workload, limit: int = LIMIT_ELEMENTS, *, constants: bool = True
) -> Instance:
    """The workload at sizes with at most ``limit`` elements in all inputs and outputs, as far as its rules allow.

    ``constants``: whether large constant axes become smaller too, which a candidate may have written down as they are.
    """
    axes = workload.validate_against(definition, f"{definition.name}: {workload.uuid}")
    best = Instance(definition, workload, axes)
    sizes = {name: axes[name] for name, axis in definition.axes.items() if isinstance(axis, (AxisConst, AxisVar))}
    free = {name for name in sizes if name not in _fixed_axes(definition, workload, axes)}
    if not constants:
        free = {name for name in free if isinstance(definition.axes[name], AxisVar)}
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


def witness(definition: Definition, workload: Workload, kept: Collection[int] = ()) -> Instance | None:
    """The smallest instance in which every axis plays the part that it has in ``workload``; None if there is none.

    Sizes are mapped, not axes: equal ones stay equal, a larger one stays larger, and a scalar input that repeats an
    axis (a window, a top-k) follows it. What sizes below 16 divide, they divide still, and odd stays odd; so do other
    scalars (a number of groups), and their parts stay no smaller than 4. Where an expression divides an axis, by a
    number or by another axis, a remainder stays one and none stays none; an axis that an expression gives stays above,
    at or below each scalar. Listed lengths and offsets shrink with the size that is their largest; axes of
    inputs whose numbers are listed do not. Neither do sizes in ``kept``, and only those that a scalar repeats bound
    larger ones. Workloads that differ in scale alone have one witness.
    """
    full = workload.validate_against(definition, f"{definition.name}: {workload.uuid}")
    sizes = {name: full[name] for name, axis in definition.axes.items() if not isinstance(axis, AxisExpr)}
    scalars = {
        name: int(generator.value)
        for name, generator in workload.inputs.items()
        if isinstance(generator, (Constant, ScalarInput)) and definition.inputs[name].dtype.startswith("int")
    }
    fixed = {*kept, *(full[name] for name in _valued_axes(definition, workload))}
    # Lengths and offsets: whole numbers of which the largest is a size.
    listed = {
        name: [int(value) for value in generator.values]
        for name, generator in workload.inputs.items()
        if isinstance(generator, Values)
        and definition.inputs[name].dtype.startswith("int")
        and max(generator.values, default=0) in sizes.values()
    }
    mapped: dict[int, int] = {}
    for size in sorted({*sizes.values(), *(value for value in scalars.values() if value > 1)}):
        shrinks = size >= KEPT and size not in fixed and size in sizes.values()
        below = [small for other, small in mapped.items() if other not in kept or other in scalars.values()]
        smallest = max([_SMALLEST if size < _LONG else _SMALLEST_LONG, *(small + 1 for small in below)])
        for candidate in range(smallest if shrinks else size, size + 1):
            mapped[size] = candidate
            steps = max((_shrunk(values, candidate)[1] for values in listed.values() if max(values) == size), default=0)
            if candidate >= steps and _same_parts(definition, full, set(scalars.values()), mapped, size):
                break
    inputs = {name: generator.as_dict() for name, generator in workload.inputs.items()}
    for name, value in scalars.items():
        inputs[name]["value"] = mapped.get(value, value)
    for name, values in listed.items():
        positions, _ = _shrunk(values, mapped[max(values)])
        inputs[name]["values"] = [positions[value] for value in values]
    fields = {**workload.as_dict(), "inputs": inputs, "stress_rounds": []}
    try:
        small = Workload.load(fields, workload.uuid)
        return _with_sizes(definition, small, {name: mapped[size] for name, size in sizes.items()}, full)
    except InputError:
        return None


def _shrunk(values: Collection[int], largest: int) -> tuple[dict[int, int], int]:
    """Where ``values`` lie when the largest lies at ``largest``, and how small that may be: what was equal or one apart
    stays so, and what was further apart stays so by at least one; the widest gap takes up the rest."""
    places = sorted({0, *values})
    gaps = [high - low for low, high in pairwise(places)]
    steps = [min(gap, 2) for gap in gaps]
    smallest = sum(steps)
    if steps:
        steps[gaps.index(max(gaps))] += largest - smallest
    return {place: sum(steps[:position]) for position, place in enumerate(places)}, smallest


def _same_parts(
    definition: Definition, full: Mapping[str, int], scalars: set[int], mapped: Mapping[int, int], size: int
) -> bool:
    """Whether the last mapped ``size`` keeps its remainders, and the axes computed from it their order to scalars."""
    small, options = mapped[size], scalars - set(full.values())
    for low, least in mapped.items():
        if low == 1 or size % low or not (low < KEPT or low in options):
            continue
        if small % least or (low in options and small // least < min(size // low, _PART)):
            return False
    if size % 2 != small % 2:
        return False
    axes: dict[str, int] = {}
    touched: set[str] = set()
    for name, axis in definition.axes.items():
        if not isinstance(axis, AxisExpr):
            if full[name] in mapped:
                axes[name] = mapped[full[name]]
            touched |= {name} if full[name] == size else set()
            continue
        operands = names_in(axis.expression, name)
        if not operands <= axes.keys():
            continue
        axes[name] = evaluate_int(axis.expression, axes, name)
        touched |= {name} if operands & touched else set()
        if any(full[operand] == size for operand in operands) and re.search("[/%]", axis.expression):
            divisors = [(full[other], axes[other]) for other in operands if full[other] < size]
            divisors += [(int(number),) * 2 for number in re.findall(r"\d+", axis.expression)]
            if any(low > 1 and (size % low == 0) != (small % least == 0) for low, least in divisors):
                return False
        for value in scalars & mapped.keys():
            if (name in touched or value == size) and _sign(axes[name] - mapped[value]) != _sign(full[name] - value):
                return False
    return True


def _sign(difference: int) -> int:
    return (difference > 0) - (difference < 0)


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


def _valued_axes(definition: Definition, workload: Workload) -> set[str]:
    """Axes of inputs whose numbers are listed."""
    listed = [name for name, generator in workload.inputs.items() if isinstance(generator, Values)]
    return {axis for name in listed for axis in definition.inputs[name].shape or ()}


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
