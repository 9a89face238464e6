"""An einsum of the IR in the mapper's form: ranks, and how each tensor is indexed by them.

Ranks of extent one vanish. A dimension that mixes ranks without overlap (the channels of a grouped convolution, a
stride at least as long as the kernel) is as good as one dimension each; one with overlap is a :class:`Window`. Ranks
that index every tensor (batch) are taken out: their best tile is one, and traffic is proportional to them. Ranks that
index the same tensors become one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solar.einsum import DTYPE_BITS, Op, Program
from solar.errors import MappingError
from solar.mapper.orders import Ranks
from solar.mapper.tiles import Window


@dataclass(frozen=True)
class Access:
    """One tensor: ``ranks`` that index it plainly, ``windows`` for the rest; ``weight`` of one element (bits).

    ``output``: it is written, and read again at every visit but the first.
    """

    weight: int
    ranks: Ranks
    windows: tuple[Window, ...] = ()
    output: bool = False

    @property
    def windowed(self) -> Ranks:
        return frozenset(rank for window in self.windows for rank in (window.p, window.r))

    @property
    def relevant(self) -> Ranks:
        return self.ranks | self.windowed


@dataclass(frozen=True)
class Space:
    """What the search enumerates: ``extents`` by rank number, ``accesses`` with the output last, ``batch`` repeats."""

    extents: tuple[int, ...]
    accesses: tuple[Access, ...]
    batch: int = 1


@dataclass(frozen=True)
class Indexing:
    """Like :class:`Access`, with the names of the IR: what :func:`space` numbers, merges and sorts."""

    weight: int
    ranks: frozenset[str]
    windows: tuple[tuple[str, int, str, int, int, int], ...] = ()
    output: bool = False


def indexing(program: Program, op: Op) -> tuple[dict[str, int], list[Indexing]]:
    """Extents above one by index name, and the accesses of an einsum, output last.

    Raises :class:`MappingError` for index maps outside of the mapper's form, and for an empty einsum.
    """
    extents = {name: extent for name, extent in op.attributes["indices"].items() if extent != 1}
    if 0 in extents.values():
        raise MappingError(f"ops.{op.name}: empty, nothing moves")
    found = []
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        tensor = program.tensors[name]
        ranks, windows = _dimensions(extents, forms, tensor.shape, f"ops.{op.name}: operand {name!r}")
        found.append(Indexing(DTYPE_BITS[tensor.dtype], ranks, windows))
    output = frozenset(index for index in op.attributes["output"] if index in extents)
    return extents, [*found, Indexing(DTYPE_BITS[program.tensors[op.outputs[0]].dtype], output, output=True)]


def _dimensions(
    extents: Mapping[str, int], forms: Sequence[Mapping[str, Any]], shape: Sequence[int], where: str
) -> tuple[frozenset[str], tuple[tuple[str, int, str, int, int, int], ...]]:
    ranks: set[str] = set()
    windows: list[tuple[str, int, str, int, int, int]] = []
    # Plain dimensions first: given their ranks, what else they occur in has one unknown less.
    for form, size in sorted(zip(forms, shape), key=lambda pair: len(pair[0]["terms"])):
        steps: dict[str, int] = {}
        for index, step in form["terms"]:
            if index in extents:
                steps[index] = steps.get(index, 0) + step
        steps = {index: step for index, step in steps.items() if step}
        last = form["offset"] + sum((extents[index] - 1) * step for index, step in steps.items())
        padded = form["offset"] < 0 or last >= size
        if any(step < 0 for step in steps.values()):
            raise MappingError(f"{where}: an index that runs backwards has no tiles here")
        fresh = sorted((step, index) for index, step in steps.items() if index not in ranks)
        if not padded:
            ranks.update(_separate(fresh, extents))
            fresh = [pair for pair in fresh if pair[1] not in ranks]
        elif len(fresh) < len(steps):
            raise MappingError(f"{where}: a padded dimension shares an index with another one")
        if len(fresh) > 2 or any(index in window for window in windows for _, index in fresh):
            raise MappingError(f"{where}: a window over more than two indices")
        if fresh:
            (stride, p), (dilation, r) = fresh[-1], fresh[0] if len(fresh) == 2 else (1, "")
            windows.append((p, stride, r, dilation, form["offset"], size))
    return frozenset(ranks), tuple(windows)


def _separate(fresh: Sequence[tuple[int, str]], extents: Mapping[str, int]) -> set[str]:
    """The indices whose steps are longer than all that the shorter steps reach: places of a mixed-radix number."""
    found: set[str] = set()
    for position in reversed(range(len(fresh))):
        step, index = fresh[position]
        if step <= sum((extents[other] - 1) * shorter for shorter, other in fresh[:position]):
            break
        found.add(index)
    return found


def space(extents: Mapping[str, int], accesses: Sequence[Indexing]) -> Space:
    """Take out batch ranks, merge equal ones, and number what is left in an order that names do not decide."""
    windowed = {index for access in accesses for window in access.windows for index in (window[0], window[2])}
    groups: dict[tuple[Any, ...], list[str]] = {}
    batch = 1
    for name, extent in extents.items():
        users = tuple(t for t, access in enumerate(accesses) if name in access.ranks)
        if name in windowed:
            roles = tuple(
                sorted((t, w.index(name), w[1], w[3:]) for t, a in enumerate(accesses) for w in a.windows if name in w)
            )
            groups.setdefault((1, users, roles, extent, name), []).append(name)
        elif len(users) == len(accesses):
            batch *= extent
        elif users:  # an index that no tensor has moves nothing
            groups.setdefault((0, users), []).append(name)
    ordered = [names for _, names in sorted(groups.items())]
    number = {name: rank for rank, names in enumerate(ordered) for name in names}
    sizes = [math.prod(extents[name] for name in names) for names in ordered]
    single = any(not window[2] for access in accesses for window in access.windows)
    if single:  # the second rank of a padded dimension of one index: one position, never looped over
        number[""] = len(sizes)
        sizes.append(1)
    found = [
        Access(
            access.weight,
            frozenset(number[name] for name in access.ranks if name in number),
            tuple(sorted((Window(number[p], s, number[r], d, o, n) for p, s, r, d, o, n in access.windows), key=str)),
            access.output,
        )
        for access in accesses
    ]
    return Space(tuple(sizes), tuple(found), batch)
