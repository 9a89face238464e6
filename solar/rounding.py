"""Running error analysis: what a program gives in exact arithmetic, and how far roundings may lead away from it.

The program runs in float64 beside a bound E on the error of every element that any order of summation in the
program's own dtypes respects (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, chapter 3):

* sums of products, F: E = F(|x| + E) - F(|x|) + gamma_s F(|x|) with subtractions as additions, gamma_s = s / (1 - s),
  s = n u_acc + u for n terms, u_acc the unit roundoff of the accumulator, u that of the result;
  Operands computed from 16-bit floats may also be rounded to that dtype, as kernels for whole attentions do;
* selections and extrema: the largest error among what may be selected;
* other functions f, monotone between the ends of an error interval: max |f(x +- E) - f(x)| + c u |f(x)|, with c = 4
  units in the last place, 16 for those that libraries compute less well;
* comparisons: an error of 1 where the operands are closer than their errors, 0 elsewhere.

What is exact stays exact: E = 0. Where nothing can be said (a position among ties, the bits of a rounded number) E is
infinite. float64 itself is taken as exact: its roundoff is 2^-29 of the next one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from solar.einsum import DTYPE_BITS, Op, Program
from solar.einsum import Tensor as Spec
from solar.errors import ReplayError
from solar.replay import run_op

UNIT_ROUNDOFF = {
    "float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3, "float4_e2m1fn_x2": 2.0**-2,
}  # fmt: skip
LOOSE_MAPS = frozenset(("pow", "lgamma", "digamma", "erfinv", "tan", "acosh", "atanh"))
# Smallest normal number, and how far a result below it may be off: a subnormal's spacing, or flushed to zero.
_UNDERFLOW = {
    "float32": (2.0**-126, 2.0**-126), "bfloat16": (2.0**-126, 2.0**-126), "float16": (2.0**-14, 2.0**-24),
    "float8_e4m3fn": (2.0**-6, 2.0**-9), "float8_e5m2": (2.0**-14, 2.0**-16), "float4_e2m1fn_x2": (1.0, 0.5),
}  # fmt: skip
_SUMS = ("add", "sub", "mul", "neg")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNMOVED = ("relu", "abs", "clamp", "sin", "cos")
_POLES = ("div", "reciprocal", "floor_divide", "remainder", "fmod", "tan", "atan2")
_MOVES = ("gather", "index_select", "embedding", "index", "index_put", "tril", "triu")
_EXACT_KINDS = ("cast", "create", "view", "copy")


@dataclass(frozen=True)
class Bounded:
    """``exact``: float64 for floats, else the tensor's own dtype. ``error``: float64, same shape, 0 to infinity."""

    exact: Tensor
    error: Tensor


@dataclass(frozen=True)
class _Forms:
    """One program with its own dtypes, with float64 for its floats, with float64 for everything; ``narrow``: see
    :func:`_narrow`."""

    own: Program
    wide: Program
    real: Program
    narrow: Mapping[str, float]


def bounded_outputs(program: Program, inputs: Mapping[str, Any]) -> dict[str, Bounded]:
    """Exact value and error bound of every output, by declared name; ``inputs`` as for :func:`solar.replay.replay`."""
    forms = _Forms(program, _retyped(program, UNIT_ROUNDOFF), _retyped(program, DTYPE_BITS), _narrow(program))
    known: dict[str, Bounded] = {}
    for declared, name in program.inputs:
        value = inputs[declared].detach()
        known[name] = _certain(value.clone())
    last_use = {name: position for position, op in enumerate(program.ops) for name in op.operands}
    kept = {name for _, name in program.outputs}
    with torch.no_grad():
        for position, op in enumerate(program.ops):
            known.update(zip(op.outputs, _bounded(forms, op, [known[name] for name in op.operands])))
            for name in op.operands:
                if last_use[name] == position and name not in kept:
                    known.pop(name, None)
    return {declared: known[name] for declared, name in program.outputs}


def _retyped(program: Program, dtypes: Collection[str]) -> Program:
    tensors = {n: Spec(t.shape, "float64" if t.dtype in dtypes else t.dtype) for n, t in program.tensors.items()}
    return replace(program, tensors=tensors)


def _narrow(program: Program) -> dict[str, float]:
    """Unit roundoff of the 16-bit floats that a tensor was computed from, 0 where others had a part in it."""
    found: dict[str, float] = {}
    constants: set[str] = set()
    for _, name in program.inputs:
        dtype = program.tensors[name].dtype
        found[name] = UNIT_ROUNDOFF[dtype] if dtype in ("float16", "bfloat16") else 0.0
    for op in program.ops:
        floats = [name for name in op.operands if program.tensors[name].dtype in UNIT_ROUNDOFF]
        varying = [found[name] for name in floats if name not in constants]
        if not varying:
            constants.update(op.outputs)
        for name in op.outputs:
            found[name] = max(varying) if varying and all(varying) else 0.0
    return found


def _certain(value: Tensor, error: float = 0.0) -> Bounded:
    exact = value.double() if value.dtype.is_floating_point else value
    return Bounded(exact, torch.full(value.shape, error, dtype=torch.float64))


def _uncertain(given: Sequence[Bounded]) -> bool:
    return any(bool(x.error.any()) for x in given)


def _bounded(forms: _Forms, op: Op, given: list[Bounded]) -> list[Bounded]:
    rounds = forms.own.tensors[op.outputs[0]].dtype in UNIT_ROUNDOFF and op.kind not in _EXACT_KINDS
    if _uncertain(given) or rounds:
        try:
            results = run_op(forms.wide, op, [x.exact for x in given])
            errors = _errors(forms, op, given, results)
        except ReplayError:
            pass
        else:
            return [_usable(result, error) for result, error in zip(results, errors)]
    # In the program's own dtypes: right where nothing is rounded and the operands are certain, else any value.
    own = [x.exact.to(getattr(torch, forms.own.tensors[name].dtype)) for x, name in zip(given, op.operands)]
    certain = not (_uncertain(given) or rounds)
    tied = {1} if op.kind in ("sort", "scan") else {0} if op.function in ("argmax", "argmin") else set()
    results = run_op(forms.own, op, own)
    return [_certain(x, 0.0 if certain and place not in tied else math.inf) for place, x in enumerate(results)]


def _usable(result: Tensor, error: Tensor) -> Bounded:
    error = torch.nan_to_num(error.double(), nan=math.inf, posinf=math.inf).expand(result.shape)
    if result.dtype.is_floating_point:
        error = torch.where(torch.isnan(result), math.inf, error)
    return Bounded(result, error)


def _errors(forms: _Forms, op: Op, given: list[Bounded], results: Sequence[Tensor]) -> list[Tensor]:
    """Error bounds of the results; :class:`ReplayError` where there is no rule."""
    function, result, spec = op.function, results[0], forms.own.tensors[op.outputs[0]]
    unit = UNIT_ROUNDOFF.get(spec.dtype, 0.0)
    normal, off = _UNDERFLOW.get(spec.dtype, (0.0, 0.0))
    terms = _terms(forms.own, op)
    moves = (op.kind in ("view", "copy") and function != "bitcast") or function in _MOVES or _overwrites(op)
    if moves and terms is None:
        return [_moved(forms, op, given)]
    smallest = torch.where((result != 0) & (result.abs() < 2 * normal), off, 0.0) if normal else 0.0
    if terms is not None:
        error = _summed(forms, op, given, terms * min(unit, UNIT_ROUNDOFF["float32"]) + unit)
        if op.kind == "map":  # an infinity of a mask stays one
            error = torch.where(torch.isinf(result), sum((x.error for x in given[1:]), given[0].error), error)
        return [error + smallest]
    if op.kind == "cast" and spec.dtype in UNIT_ROUNDOFF:
        return [given[0].error + unit * (result.abs() + given[0].error) + smallest]
    if op.kind == "cast":
        return [_at_ends(forms, op, given, result)]
    if op.kind == "reduce" and function in ("amax", "amin", "any", "all"):
        dims = op.attributes["dims"]
        return [given[0].error.amax(dims, keepdim=op.attributes["keepdim"]) if dims else given[0].error]
    if op.kind == "sort" or function in ("cummax", "cummin"):
        dim = op.attributes["dim"]
        largest = given[0].error.amax(dim, keepdim=True).expand(given[0].error.shape).narrow(dim, 0, result.shape[dim])
        return [largest, torch.full(result.shape, math.inf)]
    if op.kind == "map":
        return [_mapped(forms, op, given, result, unit) + smallest]
    raise ReplayError(f"ops.{op.name}: no error bound")


def _overwrites(op: Op) -> bool:
    return op.function == "scatter" and op.attributes["reduce"] is None


def _terms(program: Program, op: Op) -> float | None:
    """Roundings on the way of one term into a sum, in units of the accumulator; None for anything but sums."""
    if op.kind == "einsum":
        summed = [n for index, n in op.attributes["indices"].items() if index not in op.attributes["output"]]
        return math.prod(summed) + len(op.operands) - 1
    before = program.tensors[op.operands[0]].shape if op.operands else ()
    if op.kind == "reduce" and op.function in ("sum", "prod"):
        return math.prod(before[dim] for dim in op.attributes["dims"])
    if op.function == "fold":
        return math.prod(before[len(before) - op.attributes["spatial"] :])
    if op.kind == "scan" and op.function in ("cumsum", "cumprod"):
        return before[op.attributes["dim"]]
    if op.kind == "map" and op.function in _SUMS:
        return 1  # a scalar's own rounding
    if op.function == "index_add" or op.attributes.get("reduce") == "add" or op.attributes.get("accumulate"):
        # Rounded to the result's dtype after every term.
        unit = UNIT_ROUNDOFF.get(program.tensors[op.outputs[0]].dtype, 0.0)
        return math.prod(program.tensors[op.operands[1]].shape) * max(1.0, unit / UNIT_ROUNDOFF["float32"])
    return None


def _summed(forms: _Forms, op: Op, given: list[Bounded], roundoff: float) -> Tensor:
    if op.function == "neg":
        return given[0].error
    if roundoff >= 0.5:
        raise ReplayError(f"ops.{op.name}: so many roundings that nothing is certain")
    attributes = dict(op.attributes)
    if "scalars" in attributes:
        attributes["scalars"] = {place: abs(float(value)) for place, value in attributes["scalars"].items()}
    positive = replace(op, function="add" if op.function == "sub" else op.function, attributes=attributes)
    real = [x.exact.dtype.is_floating_point for x in given]
    if _uncertain([x for x, floats in zip(given, real) if not floats]):
        raise ReplayError(f"ops.{op.name}: integers that are not certain")
    sizes = [x.exact.abs() if floats else x.exact for x, floats in zip(given, real)]
    further = [size + x.error if floats else size for size, x, floats in zip(sizes, given, real)]
    if op.kind == "einsum":
        units = [forms.narrow[name] if bool(x.error.any()) else 0.0 for name, x in zip(op.operands, given)]
        further = [grown * (1 + unit) if unit else grown for grown, unit in zip(further, units)]
    magnitude = run_op(forms.wide, positive, sizes)[0]
    grown = run_op(forms.wide, positive, further)[0]
    return (grown - magnitude).clamp(min=0) + roundoff / (1 - roundoff) * magnitude


def _moved(forms: _Forms, op: Op, given: list[Bounded]) -> Tensor:
    """Errors move as the elements do; what a constant fills has none."""
    places = range(1, 1 + len(op.attributes.get("dims", (0,)))) if op.kind == "index" else range(0)
    if _uncertain([given[place] for place in places]):
        raise ReplayError(f"ops.{op.name}: positions that are not certain")
    attributes = dict(op.attributes)
    if "scalars" in attributes:
        attributes["scalars"] = dict.fromkeys(attributes["scalars"], 0.0)
    if "value" in attributes:
        attributes["value"] = 0.0
    operands = [x.exact if place in places else x.error for place, x in enumerate(given)]
    return run_op(forms.real, replace(op, attributes=attributes), operands)[0]


def _mapped(forms: _Forms, op: Op, given: list[Bounded], result: Tensor, unit: float) -> Tensor:
    function, errors = op.function, [x.error for x in given]
    scalars = {place: float(value) for place, value in op.attributes.get("scalars", {}).items()}
    size = torch.nan_to_num(result.double(), posinf=0.0, neginf=0.0).abs()
    unit = unit if result.dtype.is_floating_point else 0.0
    if function == "where":
        return _chosen(scalars, given) + (unit * size if scalars else 0.0)
    if function in _COMPARISONS:
        values = [x.exact.double() for x in given]
        apart = (values[0] - (values[1] if len(values) > 1 else next(iter(scalars.values())))).abs()
        reach = sum(errors[1:], errors[0])
        return ((apart <= reach) & (reach > 0)).double()
    if function in ("maximum", "minimum", "fmax", "fmin"):
        return torch.maximum(errors[0], errors[-1]) + (unit * size if scalars else 0.0)
    if function in _UNMOVED:
        return errors[0] + (4 * unit * size if scalars or function in ("sin", "cos") else 0.0)
    moved = _at_ends(forms, op, given, result)
    if function in _POLES and "1" not in scalars:
        last = given[-1]
        moved = torch.where((last.exact.abs() <= last.error) & (last.error > 0), math.inf, moved)
    return moved + (16 if function in LOOSE_MAPS else 4) * unit * size


def _chosen(scalars: Mapping[str, float], given: Sequence[Bounded]) -> Tensor:
    queue = iter(given)
    condition, first, second = (
        _certain(torch.tensor(scalars[place], dtype=torch.float64)) if place in scalars else next(queue)
        for place in "012"
    )
    either = torch.maximum(first.error, second.error) + (first.exact.double() - second.exact.double()).abs()
    settled = torch.where(condition.exact.bool(), first.error, second.error)
    return torch.where(condition.error > 0, either, settled)


def _at_ends(forms: _Forms, op: Op, given: list[Bounded], result: Tensor) -> Tensor:
    """Largest change of the result between the corners of the operands' error intervals."""
    if _uncertain([x for x in given if not x.exact.dtype.is_floating_point]):
        if result.dtype != torch.bool:
            raise ReplayError(f"ops.{op.name}: integers that are not certain")
        return sum((x.error for x in given[1:]), given[0].error).clamp(max=1)
    ends = [(x.exact - x.error, x.exact + x.error) if bool(x.error.any()) else (x.exact,) for x in given]
    largest = torch.zeros(result.shape, dtype=torch.float64)
    for corner in itertools.product(*ends):
        end = run_op(forms.wide, op, list(corner))[0].double()
        change = torch.where(end == result, 0.0, (end - result.double()).abs())
        largest = torch.maximum(largest, torch.nan_to_num(change, nan=math.inf))
    return largest
