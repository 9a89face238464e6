"""How much of a tensor is its own: equal slices, elements that few values decide, elements that a mask may zero.

An outer product, a Kronecker product, a tiled or interpolated tensor, a function of a row and a column hold fewer
values than elements, and a kernel can multiply with the values. Every number here is at most the true one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from solar.bound import axes as ax
from solar.bound import regions as rg
from solar.bound.facts import Facts
from solar.bound.patterns import NEVER, scalars_of
from solar.bound.regions import Region, everything
from solar.bound.views import groups_of, pull_view
from solar.einsum import DTYPE_BITS, Op, Program

_GATHERS = frozenset(("gather", "index_select", "embedding", "index"))
_LINEAR = frozenset(("neg", "identity", "add", "sub", "mul", "div"))
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf"))

# Tensors (and which part of them; None: all) that decide a tensor.
_Atoms = Mapping[str, Region | None]


@dataclass(frozen=True)
class Structure:
    """By tensor name. ``different``: slices along each dimension that differ from each other. ``own``: values that
    decide all elements. ``masks``: unknown masks, by inputs of whole numbers and not by chance. ``never``: those whose
    values are so low that they mean "not attended to" where they are added. ``vanishing``: masks, and what they may
    zero altogether."""

    different: Mapping[str, tuple[int, ...]]
    own: Mapping[str, int]
    masks: frozenset[str]
    never: frozenset[str]
    vanishing: frozenset[str]

    def poor(self, facts: Facts, name: str) -> bool:
        """Whether a tensor is decided by fewer values than it has elements, equal slices and known zeros apart."""
        room = math.prod(self.different[name])
        pattern = facts.patterns.get(name)
        if pattern is not None and pattern.outside == 0:
            room = min(room, 0 if pattern.block is None else pattern.block.count)
        return self.own[name] < room


def structure_of(program: Program, facts: Facts) -> Structure:
    """One pass over the program in execution order."""
    walk = _Walk(program, facts)
    for op in program.ops:
        walk.visit(op)
    masks = frozenset(walk.masks | walk.never)
    return Structure(walk.different, walk.own, masks, frozenset(walk.never), masks | walk.vanishing)


@dataclass
class _Walk:
    program: Program
    facts: Facts
    different: dict[str, tuple[int, ...]] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    atoms: dict[str, _Atoms] = field(default_factory=dict)
    producers: dict[str, Op] = field(default_factory=dict)
    masks: set[str] = field(default_factory=set)
    # Masks whose values are so low that they mean "not attended to" where they are added.
    never: set[str] = field(default_factory=set)
    vanishing: set[str] = field(default_factory=set)
    # Comparisons of numbers with a fraction: what they choose is left to chance.
    chance: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for _, name in self.program.inputs:
            tensor = self.program.tensors[name]
            self.different[name] = tensor.shape
            self._alone(name)
            if tensor.dtype == "bool" and not self._settled(name):
                self.masks.add(name)

    def visit(self, op: Op) -> None:
        for name in op.outputs:
            self.producers[name] = op
            shape = self.program.tensors[name].shape
            self.different[name] = tuple(
                1 if dim in self.facts.uniform[name] else min(extent, max(1, count)) if extent else 0
                for dim, (extent, count) in enumerate(zip(shape, self._different(op, shape), strict=True))
            )
            self._decide(op, name)
            self._mask(op, name)

    # Values.

    def _alone(self, name: str) -> None:
        """A tensor that stands for itself."""
        pattern = self.facts.patterns.get(name)
        count = math.prod(self.different[name])
        if pattern is not None and pattern.outside == 0:
            count = min(count, 0 if pattern.block is None else pattern.block.count)
        self.own[name] = count
        self.atoms[name] = {name: None}

    def _decide(self, op: Op, name: str) -> None:
        if op.kind == "create" and op.function in ("full", "empty"):
            self.own[name], self.atoms[name] = 0, {}
            return
        if op.kind in ("create", "scan", "sort", "opaque") or (op.kind == "einsum" and len(op.operands) > 1):
            self._alone(name)
            return
        part = self._part(op, name)
        if part is not None:
            merged: dict[str, Region | None] = dict(part)
        else:
            merged = {}
            places = op.kind == "index" and op.function in _GATHERS
            if places and self.program.tensors[op.operands[1]].elements >= self.program.tensors[name].elements:
                self._alone(name)  # a look-up: the choices are as many values
                return
            for operand in op.operands[:1] if places else op.operands:
                for atom, region in self.atoms[operand].items():
                    held = merged.get(atom, ())
                    merged[atom] = None if held is None or region is None else rg.unite(held, region)
        total = sum(self.own[atom] if region is None else rg.count(region) for atom, region in merged.items())
        room = math.prod(self.different[name])
        # A function of several tensors, or one that is not linear, makes values of its own.
        fresh = op.kind == "map" and (op.function not in _LINEAR or len(op.operands) > 1)
        if total >= room and fresh:
            self._alone(name)
        else:
            self.own[name], self.atoms[name] = min(total, room), merged

    def _part(self, op: Op, name: str) -> _Atoms | None:
        """The part of a tensor that a view shows, or known indices pick; None where all counts."""
        tensors = self.program.tensors
        dim = self._picks(op)
        if dim is not None and op.operands[1] in self.program.values:
            given = op.operands[0]
            if set(self.atoms[given]) != {given} or self.own[given] < tensors[given].elements:
                return None
            shape = tensors[given].shape
            rows = ax.of(shape[dim], (int(value) for value in self.program.values[op.operands[1]]))
            whole = everything(shape).axes
            return {given: (rg.Block((*whole[:dim], rows, *whole[dim + 1 :])),)}
        if op.kind != "view" or tensors[name].elements >= tensors[op.operands[0]].elements:
            return None
        if len(self.atoms[op.operands[0]]) != 1:
            return None
        base = next(iter(self.atoms[op.operands[0]]))
        region: Region = (everything(tensors[name].shape),)
        while name != base:
            made = self.producers.get(name)
            if made is None or made.kind != "view" or self.own[base] < tensors[base].elements:
                return None
            given = made.operands[0]
            bits = (DTYPE_BITS[tensors[name].dtype], DTYPE_BITS[tensors[given].dtype])
            shape = tensors[given].shape
            region = rg.region(
                *(part for block in region for part in pull_view(made.function, made.attributes, block, shape, bits))
            )
            name = given
        return {base: region}

    def _picks(self, op: Op) -> int | None:
        """The dimension along which one list of indices gathers."""
        if op.function == "index_select":
            return int(op.attributes["dim"])
        one = op.function == "index" and len(op.operands) == 2
        return int(op.attributes["dims"][0]) if one and len(self.program.tensors[op.operands[1]].shape) == 1 else None

    # Equal slices.

    def _different(self, op: Op, shape: tuple[int, ...]) -> Sequence[int]:
        if not op.operands or op.kind == "opaque":
            return shape
        own = self.different[op.operands[0]]
        given = self.program.tensors[op.operands[0]].shape
        if op.kind == "map":
            return self._joined(op, shape)
        if op.kind in ("cast", "scan", "sort"):
            return [n if op.attributes.get("dim") == i else own[i] for i, n in enumerate(shape)] if shape else shape
        if op.kind == "reduce":
            if op.function == "fold":
                return shape
            dims = op.attributes["dims"]
            return own if op.attributes.get("keepdim") else [n for i, n in enumerate(own) if i not in dims]
        if op.kind == "einsum":
            return self._of_products(op)
        if op.kind == "copy":
            return self._of_copy(op, own, given, shape)
        dim = self._picks(op)
        if dim is not None:
            known = self.program.values.get(op.operands[1])
            rows = shape[dim] if known is None else len(set(known))
            rows = min(rows, own[dim]) if known is None or own[dim] == given[dim] else 1
            return [rows if i == dim else n for i, n in enumerate(own)]
        if op.kind == "index" or op.function == "bitcast":
            data = op.operands[:1] if op.function in _GATHERS else op.operands
            return shape if self._any_full(data) else [1] * len(shape)
        return _of_view(op, own, given, shape)

    def _joined(self, op: Op, shape: tuple[int, ...]) -> list[int]:
        found = [1] * len(shape)
        for name in op.operands:
            lead = len(shape) - len(self.different[name])
            for dim, count in enumerate(self.different[name]):
                found[dim + lead] = max(found[dim + lead], count)
        if op.function in ("tril", "triu"):
            found[-2:] = shape[-2:]
        return found

    def _of_products(self, op: Op) -> list[int]:
        found = dict.fromkeys(op.attributes["output"], 1)
        for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
            for dim, form in enumerate(forms):
                for index, coefficient in form["terms"]:
                    if index in found:
                        plain = len(form["terms"]) == 1 and coefficient == 1 and not form["offset"]
                        count = self.different[name][dim] if plain else op.attributes["indices"][index]
                        found[index] = max(found[index], count)
        return [found[index] for index in op.attributes["output"]]

    def _of_copy(
        self, op: Op, own: tuple[int, ...], given: tuple[int, ...], shape: tuple[int, ...]
    ) -> Sequence[int]:  # fmt: skip
        if op.function == "repeat":
            return (*((1,) * (len(shape) - len(own))), *own)
        if op.function == "cat":
            dim, pieces = op.attributes["dim"], list(dict.fromkeys(op.operands))
            return [(sum if i == dim else max)(self.different[name][i] for name in pieces) for i in range(len(shape))]
        if op.function in ("clone", "flip", "roll", "pad"):
            return own
        return shape if self._any_full(op.operands) else [1] * len(shape)

    def _any_full(self, names: Sequence[str]) -> bool:
        return any(self.different[name] == self.program.tensors[name].shape for name in names)

    # Masks.

    def _settled(self, name: str) -> bool:
        pattern = self.facts.patterns.get(name)
        return pattern is not None and pattern.settled

    def _is_hole(self, name: str) -> bool:
        """Whether a known ban is all that is known: its complement has no form, so its places count as lost."""
        pattern = self.facts.patterns.get(name)
        if pattern is None or pattern.block is None or pattern.outside is not None or pattern.inside is None:
            return False
        return pattern.inside == 0 or pattern.inside <= NEVER

    def _mask(self, op: Op, name: str) -> None:
        tensors = self.program.tensors
        lost = self.masks | self.never
        scalars = scalars_of(op) if op.kind in ("map", "index") else {}
        if self._is_hole(name):
            self.vanishing.add(name)
        if self._settled(name) or op.kind in ("create", "sort", "scan", "opaque"):
            return
        floats = [n for n in op.operands if tensors[n].dtype.startswith(("float", "bfloat")) and n not in lost]
        if tensors[name].dtype == "bool":
            compared = op.kind == "map" and op.function in _COMPARISONS
            by_chance = (compared and floats) or (
                any(n in self.chance for n in op.operands) and not any(n in self.masks for n in op.operands)
            )
            (self.chance if by_chance else self.masks).add(name)
            return
        first = op.operands[0] if op.operands else ""
        data = op.operands[:1] if op.function in _GATHERS else op.operands
        if op.kind in ("view", "copy", "index") and all(self._settled(n) for n in data):
            self.masks.add(name)  # a known mask whose places were lost
            return
        passes = op.kind in ("view", "copy", "cast") or (op.kind == "reduce" and op.function in ("sum", "amax"))
        if op.kind == "map" and op.function == "where" and 0 not in scalars:
            chosen = first in self.masks
            values = [scalars.get(i) for i in (1, 2) if i in scalars]
            fixed = [n for n in op.operands[1:] if n in self.facts.fixed]
            values += [p.outside for n in fixed if (p := self.facts.patterns.get(n)) is not None and p.settled]
            constant = [v for v in values if v is not None]
            if chosen and len(values) + len(op.operands) - 1 - len(fixed) == 2 and len(constant) == 2:
                (self.never if min(constant) <= NEVER else self.masks).add(name)
            elif (chosen and constant) or any(n in self.vanishing for n in op.operands[1:]):
                self.vanishing.add(name)
        elif passes or op.kind == "map":
            others = [n for n in op.operands if n not in lost and n not in self.facts.fixed]
            if first and not others and any(n in lost for n in op.operands):
                low = op.function == "mul" and any(abs(v) >= -NEVER for v in scalars.values())
                kept = low or any(n in self.never for n in op.operands)
                (self.never if kept else self.masks).add(name)
            elif self._vanishes(op, passes):
                self.vanishing.add(name)
        elif op.kind == "einsum" and any(n in lost or n in self.vanishing for n in op.operands):
            self.vanishing.add(name)

    def _vanishes(self, op: Op, passes: bool) -> bool:
        zero = [n in self.masks or n in self.vanishing or n in self.facts.selectors for n in op.operands]
        if passes or len(op.operands) == 1:
            return all(zero) and bool(zero)
        if op.function == "mul":
            return any(zero)
        if op.function in ("div", "sub"):
            return zero[0] or (op.function == "sub" and op.operands[1] in self.never)
        return op.function == "add" and (all(zero) or any(n in self.never for n in op.operands))


def _of_view(op: Op, own: tuple[int, ...], given: tuple[int, ...], shape: tuple[int, ...]) -> Sequence[int]:
    function, attributes = op.function, op.attributes
    if function == "permute":
        return [own[dim] for dim in attributes["dims"]]
    if function == "expand":
        lead = len(shape) - len(own)
        return [own[i - lead] if i >= lead else 1 for i in range(len(shape))]
    if function == "slice":
        dim = attributes["dim"]
        return [n - (given[i] - shape[i]) if i == dim and n < given[i] else n for i, n in enumerate(own)]
    if function == "select":
        return [n for i, n in enumerate(own) if i != attributes["dim"]]
    if function not in ("squeeze", "unsqueeze", "reshape") or 0 in given or 0 in shape:
        return shape if own == given else [1] * len(shape)
    found = [1] * len(shape)
    for left, right in groups_of(shape, given):
        count = math.prod(own[i] for i in right)
        extent = math.prod(shape[i] for i in left)
        for i in left:
            # So many combinations need so many of one part, at least.
            found[i] = -(-count // (extent // shape[i]))
    return found
