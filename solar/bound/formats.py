"""What one multiply-add costs: the cheapest format in which a machine may form it (rule 2).

A contraction of operands a and b costs, in format f, ``products`` passes at the rate of f. Each operand enters

* exactly (one term), if f represents every value of its dtype; a tensor that was cast up counts as its source dtype,
* rounded (one term), if f is a coarser float that the problem's checks do not reject; in doubt it is admissible,
* split into two terms, fp32 as two fp16 or two TF32 numbers, which keeps about fp32's precision: always admissible.

Two split operands need three products (the product of the two small terms is below rounding). Eight-bit and narrower
formats are used for operands that are exactly of such a dtype only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from solar.einsum import DTYPE_BITS, Op, Program
from solar.errors import GraphError
from solar.hardware import Machine, Rate

# Not dtypes: integers of four bits, and one of sixteen values that a function makes of them. An engine may take either
# as it is stored; in doubt the values are those of a four-bit float.
CODE, TABLE = "code4", "table4"
CODES = frozenset((CODE, TABLE))
_FLOATS = ("float4", "float8", "float16", "bfloat16", "tfloat32", "float32", "float64")
_CODED = frozenset(("uint8", "int8", "int16", "int32", "int64", *_FLOATS))
_BITS = {**DTYPE_BITS, CODE: 4, TABLE: 4}
_ROUNDINGS = ("round", "floor", "ceil", "trunc")
# Formats that hold every value of a dtype.
_EXACT: Mapping[str, frozenset[str]] = {
    "float64": frozenset(("float64",)),
    "float32": frozenset(("float32", "float64")),
    "float16": frozenset(("float16", "tfloat32", "float32", "float64")),
    "bfloat16": frozenset(("bfloat16", "tfloat32", "float32", "float64")),
    "float8_e4m3fn": frozenset(("float8", "float16", "bfloat16", "tfloat32", "float32", "float64")),
    "float8_e5m2": frozenset(("float8", "float16", "bfloat16", "tfloat32", "float32", "float64")),
    "float8_e8m0fnu": frozenset(("bfloat16", "tfloat32", "float32", "float64")),
    "float4_e2m1fn_x2": frozenset(
        ("float4", "int8", "int4", "float8", "float16", "bfloat16", "tfloat32", "float32", "float64")
    ),
    "bool": frozenset(("int4", "int8", "float4", "float8", "float16", "bfloat16", "tfloat32", "float32", "float64")),
    CODE: _CODED | {"int4"},
    TABLE: _CODED,
    "int8": frozenset(("int8", "float16", "bfloat16", "tfloat32", "float32", "float64")),
    "uint8": frozenset(("int8", "float16", "bfloat16", "tfloat32", "float32", "float64")),
    "int16": frozenset(("float32", "float64")),
    "int32": frozenset(("float64",)),
    "int64": frozenset(),
}
# Coarser floats that an operand may be rounded to, unless a check rejects them.
_ROUNDED: Mapping[str, frozenset[str]] = {
    "float64": frozenset(("float32", "tfloat32", "float16", "bfloat16")),
    "float32": frozenset(("tfloat32", "float16", "bfloat16")),
    "bfloat16": frozenset(("float16",)),
    "float16": frozenset(("bfloat16",)),
}
# Terms of an operand that is split, by dtype and format.
_SPLIT: Mapping[str, Mapping[str, int]] = {
    "float32": {"float16": 2, "tfloat32": 2},
    "float64": {"float32": 2},
    "int16": {"int8": 2},
    "int32": {"int8": 4},
    "int64": {"int8": 8},
}
# Every name that an operand's rounding can be rejected to; ``<format>x2`` is its split into terms.
FORMATS = frozenset((*DTYPE_BITS, *(name for formats in _EXACT.values() for name in formats)))


def check_rejected(names: Iterable[str]) -> None:
    """Raise :class:`GraphError` where a rejected format is none: it would be ignored."""
    for name in names:
        if name.removesuffix("x2") not in FORMATS and name not in FORMATS:
            raise GraphError(f"rejected_formats: unknown format {name!r}; there are {', '.join(sorted(FORMATS))}")


@dataclass(frozen=True)
class Price:
    """One multiply-add: ``products`` of them at ``rate`` (a multiply-add is two operations)."""

    engine: str
    mode: str
    products: int
    rate: Rate

    @property
    def seconds(self) -> float:
        """Seconds a multiply-add."""
        return 2 * self.products / self.rate.per_s


@dataclass
class Prices:
    """Cheapest price by pair of dtypes, for one machine and one set of rejected formats."""

    machine: Machine
    rejected: Collection[str]
    _known: dict[tuple[str, str, bool], Price] = field(default_factory=dict)

    def of(self, a: str, b: str, *, elementwise: bool = False) -> Price:
        """Price of a product of two dtypes; where no format fits, the elementwise engine at its fastest.

        ``elementwise``: a product in which one operand has no dimension of its own (a matrix times a vector, a
        depthwise filter) leaves all but one column of a matrix engine idle, so it runs on the other one.
        """
        key = (a, b, elementwise) if a <= b else (b, a, elementwise)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, a: str, b: str, elementwise: bool) -> Price:
        found: list[tuple[float, int, Price]] = []
        for engine, rates in self.machine.engines.items():
            if elementwise and engine != "valu":
                continue
            for name, rate in rates.items():
                left, right = self._terms(a, name), self._terms(b, name)
                if not left or not right:
                    continue
                products = products_of(left, right, integer=name in ("int8", "int4"))
                mode = name if products == 1 else f"{name}*{products}"
                price = Price(engine, mode, products, rate)
                # Of equally quick formats the one that rounds less.
                found.append((price.seconds, (name not in _EXACT[a]) + (name not in _EXACT[b]), price))
        if not found:
            name, rate = self.machine.fastest("valu")
            return Price("valu", name, 1, rate)
        return min(found, key=lambda item: item[:2])[2]

    def _terms(self, dtype: str, name: str) -> int:
        """Numbers of format ``name`` that stand for one of ``dtype``; 0 where it cannot."""
        if name in _EXACT[dtype]:
            return 1
        if name in _ROUNDED.get(dtype, ()) and name not in self.rejected:
            return 1
        if f"{name}x2" in self.rejected:
            return 0
        return _SPLIT.get(dtype, {}).get(name, 0)


def products_of(left: int, right: int, *, integer: bool) -> int:
    """Products for operands of so many terms: floats drop the smallest, integers all above the result's width."""
    if left == 1 or right == 1:
        return left * right
    return left * (left + 1) // 2 if integer else left * right - 1


def sources(program: Program) -> dict[str, str]:
    """Narrowest dtype that every tensor's values were exactly cast from, up to factors that a product may take out.

    Views, copies and exact casts keep a source. So does arithmetic with a smaller tensor or a scalar, for a scale or a
    zero point that repeats along a dimension leaves the sum: quantised operands are multiplied as they are stored.
    Fields of four bits, tables of them, and integers that are kept inside a byte are such operands, too.
    """
    producers = program.producers()
    found: dict[str, str] = {name: tensor.dtype for name, tensor in program.tensors.items()}
    for op in program.ops:
        if len(op.outputs) != 1 or not op.operands:
            continue
        output = op.outputs[0]
        candidate = _source(program, op, found, producers)
        if candidate is not None and _holds(found[output], candidate):
            found[output] = candidate
    return found


def _holds(dtype: str, source: str) -> bool:
    """Whether ``source`` is ``dtype`` or a narrower one all of whose values it has."""
    if dtype == source:
        return True
    if _BITS[source] >= _BITS[dtype]:
        return False
    integers = ("bool", "int", "uint")
    return dtype in _EXACT[source] or (dtype.startswith(integers) and source.startswith(integers))


def _source(program: Program, op: Op, found: Mapping[str, str], producers: Mapping[str, Op]) -> str | None:
    if op.kind in ("cast", "view") or (op.kind == "copy" and len(op.operands) == 1):
        return None if op.function == "bitcast" else found[op.operands[0]]
    if op.kind == "copy" and op.function == "cat":
        return _widest(found[name] for name in op.operands)
    if op.kind == "index" and op.function in ("gather", "index_select", "embedding", "index"):
        return TABLE if all(found[name] == CODE for name in op.operands[1:]) else found[op.operands[0]]
    if op.kind != "map":
        return None
    kept = _kept(op, program.tensors[op.operands[0]].dtype, producers.get(op.operands[0]))
    if kept is not None:
        return kept
    given = {found[name] for name in op.operands}
    coded = given & CODES and given <= {*CODES, "bool"}
    if op.function in ("mul", "div", "sub", "add", "neg"):
        output = program.tensors[op.outputs[0]]
        large = [name for name in op.operands if program.tensors[name].elements == output.elements]
        if len(large) == 1 and (op.function != "div" or large[0] == op.operands[0]):
            return found[large[0]]
    elif coded and op.function.startswith("bitwise"):
        return CODE
    return TABLE if coded else None


def _kept(op: Op, dtype: str, before: Op | None) -> str | None:
    """What integers are that a map keeps inside of fixed limits."""
    if op.function == "sign":
        return CODE
    if op.function in _ROUNDINGS and before is not None and before.function == "clamp":
        op, dtype = before, "int64"  # rounding leaves what lies between two integers there
    scalars = op.attributes.get("scalars", {})
    low, high = scalars.get("1"), scalars.get("2")
    if op.function == "where" and isinstance(low, (int, float)) and isinstance(high, (int, float)):
        low, high = min(low, high), max(low, high)
    elif op.function == "bitwise_and" and isinstance(low, int):
        low, high = (0, low) if low >= 0 else (None, None)
    elif op.function == "bitwise_right_shift" and isinstance(low, int):
        low, high = (0, 2 ** max(0, DTYPE_BITS[dtype] - low) - 1)
    elif op.function != "clamp" or (
        dtype.startswith(("float", "bfloat")) and (before is None or before.function not in _ROUNDINGS)
    ):
        return None
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    if not float(low).is_integer() or not float(high).is_integer():
        return None
    if low >= -8 and high - max(low, 0) <= 15 and (low >= 0 or high <= 7):
        return CODE
    return "int8" if low >= -128 and high <= 127 else "uint8" if low >= 0 and high <= 255 else None


def _widest(dtypes: Iterable[str]) -> str | None:
    listed = sorted(dtypes, key=lambda name: _BITS[name])
    if any(_BITS[a] == _BITS[b] and a != b for a, b in pairwise(listed)):
        return None
    return listed[-1]
