"""Tensor networks: one multilinear expression as factors over indices.

A :class:`Network` starts as one tensor and grows backwards through the program: a factor is replaced by the factors of
the linear operation that made it (:mod:`solar.bound.expansion`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from solar.bound import axes as ax
from solar.bound.axes import Axis
from solar.bound.pairs import Pair
from solar.bound.regions import Block
from solar.bound.views import unflatten


class NotALinearMapError(Exception):
    """A view has no affine form over the network's indices. The network stops there."""


@dataclass(frozen=True)
class Form:
    """Affine function of indices: offset + sum of coefficient * index."""

    terms: tuple[tuple[str, int], ...] = ()
    offset: int = 0

    @property
    def index(self) -> str | None:
        """The index that the form is, if it is just one with coefficient 1."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 else None

    def scaled(self, scale: int, offset: int) -> Form:
        return Form(tuple((name, c * scale) for name, c in self.terms), self.offset * scale + offset)

    def plus(self, other: Form) -> Form:
        sums = dict(self.terms)
        for name, c in other.terms:
            sums[name] = sums.get(name, 0) + c
        return Form(tuple((name, c) for name, c in sums.items() if c), self.offset + other.offset)

    def substituted(self, name: str, form: Form) -> Form:
        """With one index replaced by a form."""
        sums: dict[str, int] = {}
        offset = self.offset
        for own, c in self.terms:
            if own != name:
                sums[own] = sums.get(own, 0) + c
                continue
            offset += c * form.offset
            for other, d in form.terms:
                sums[other] = sums.get(other, 0) + c * d
        return Form(tuple((n, c) for n, c in sums.items() if c), offset)


@dataclass(frozen=True)
class Factor:
    """A tensor at forms of the indices. ``groups``: expansions that it belongs to, each a tensor and a number (one
    tensor may be expanded at several places)."""

    tensor: str
    forms: tuple[Form, ...]
    groups: tuple[tuple[str, int], ...] = ()

    @property
    def indices(self) -> frozenset[str]:
        return frozenset(name for form in self.forms for name, _ in form.terms)


@dataclass
class Network:
    """``sets``: positions of every index; ``pairs``: conditions on two of them; ``windows``: stride-1 windows, as the
    indices of the position, the index of the tap, and the number of taps; ``scales``: factors that were left out for
    repeating along some dimension."""

    sets: dict[str, Axis]
    output: list[str]
    factors: list[Factor]
    pairs: list[tuple[str, str, Pair]] = field(default_factory=list)
    windows: list[tuple[frozenset[str], str, int]] = field(default_factory=list)
    scales: list[Factor] = field(default_factory=list)
    renames: dict[str, Form] = field(default_factory=dict)
    fresh: int = 0
    # Part of the expression has no form here: only its largest unavoidable term can be priced.
    broken: bool = False
    # Tensors whose known zeros have no form here: of these, only as many products count as they have other elements.
    thinned: frozenset[str] = frozenset()

    @classmethod
    def at(cls, tensor: str, block: Block) -> Network:
        """The network that is one tensor, at the positions of a block."""
        names = [f"o{i}" for i in range(len(block.axes))]
        return cls(
            sets=dict(zip(names, block.axes, strict=True)),
            output=list(names),
            factors=[Factor(tensor, tuple(Form(((name, 1),)) for name in names))],
            pairs=[(names[p.first], names[p.second], p) for p in block.pairs],
        )

    def copy(self) -> Network:
        return Network(
            dict(self.sets), list(self.output), list(self.factors), list(self.pairs), list(self.windows),
            list(self.scales), dict(self.renames), self.fresh, self.broken, self.thinned,
        )  # fmt: skip

    def adopt(self, other: Network) -> None:
        """Become a copy that was tried out."""
        vars(self).update(vars(other))

    def new_group(self, tensor: str) -> tuple[str, int]:
        self.fresh += 1
        return tensor, self.fresh

    def new_index(self, axis: Axis) -> str:
        self.fresh += 1
        name = f"k{self.fresh}"
        self.sets[name] = axis
        return name

    def split(self, name: str, radix: int) -> tuple[str, str]:
        """Replace an index by two, index = radix * first + second, everywhere.

        A partial set of positions is cut down to a box of the two (fewer positions, never more).
        """
        axis = self.sets[name]
        if axis.extent % radix or any(name in (x, y) for x, y, _ in self.pairs):
            raise NotALinearMapError
        outer, inner = ax.whole(axis.extent // radix), ax.whole(radix)
        if not axis.full:
            boxes = unflatten(axis, (outer.extent, radix))
            if not boxes:
                raise NotALinearMapError
            outer, inner = max(boxes, key=lambda box: box[0].count * box[1].count)
        first, second = self.new_index(outer), self.new_index(inner)
        form = Form(((first, radix), (second, 1)))
        self.factors = [replace(f, forms=tuple(g.substituted(name, form) for g in f.forms)) for f in self.factors]
        self.output = [new for old in self.output for new in ((first, second) if old == name else (old,))]
        self.windows = [
            ((at - {name}) | {first, second} if name in at else at, tap, taps)
            for at, tap, taps in self.windows
            if tap != name
        ]
        self.scales = [replace(f, forms=tuple(g.substituted(name, form) for g in f.forms)) for f in self.scales]
        self.renames[name] = form
        del self.sets[name]
        return first, second

    def current(self, form: Form) -> Form:
        """A form that was held outside while indices were split."""
        while any(name in self.renames for name, _ in form.terms):
            for name, _ in form.terms:
                if name in self.renames:
                    form = form.substituted(name, self.renames[name])
                    break
        return form

    def limit(self, form: Form, axis: Axis) -> None:
        """Keep only positions at which ``form`` lies in ``axis`` (nothing is kept out where that is not simple)."""
        name = form.index
        if axis.full or name is None:
            return
        shown = ax.preimage(axis, 1, form.offset, self.sets[name].extent)
        self.sets[name] = ax.intersection(self.sets[name], shown)

    def condition(self, first: Form, second: Form, pair: Pair) -> bool:
        """Add a condition on two forms that are single indices; whether it could be added."""
        x, y = first.index, second.index
        if x is None or y is None or x == y or (pair.rows is not None and (first.offset or second.offset)):
            return False
        if first.offset or second.offset:
            shift = pair.a * first.offset + pair.b * second.offset
            pair = replace(
                pair,
                low=None if pair.low is None else pair.low - shift,
                high=None if pair.high is None else pair.high - shift,
            )
        self.pairs.append((x, y, pair))
        return True
