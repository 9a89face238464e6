"""Loop nests executed step by step, with sets of elements for what the buffer holds: nothing of solar.mapper in here.

A nest is written as the IR writes an einsum: extents by index, an affine form per dimension of each tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

Tile = Mapping[str, range]


@dataclass(frozen=True)
class Tensor:
    """``dims``: per dimension the steps by index, an offset and the size (outside of it nothing is read)."""

    dims: tuple[tuple[tuple[tuple[str, int], ...], int, int], ...]
    weight: int = 1
    output: bool = False

    @property
    def indices(self) -> set[str]:
        return {index for steps, _, _ in self.dims for index, _ in steps}

    def elements(self, tile: Tile) -> frozenset[tuple[int, ...]]:
        names = sorted(self.indices)
        found = set()
        for values in product(*(tile[name] for name in names)):
            at = dict(zip(names, values))
            place = tuple(offset + sum(step * at[i] for i, step in steps) for steps, offset, _ in self.dims)
            if all(0 <= x < size for x, (_, _, size) in zip(place, self.dims)):
                found.add(place)
        return frozenset(found)


def plain(extents: Mapping[str, int], letters: str, weight: int = 1, output: bool = False) -> Tensor:
    """A tensor with one index per dimension."""
    return Tensor(tuple((((letter, 1),), 0, extents[letter]) for letter in letters), weight, output)


def cut(extent: int, tile: int) -> list[range]:
    return [range(start, min(start + tile, extent)) for start in range(0, extent, tile)]


def every(extent: int) -> list[int]:
    return list(range(1, extent + 1))


def factors(extent: int) -> list[int]:
    return [t for t in every(extent) if extent % t == 0]


def smallest(extent: int) -> list[int]:
    """For each number of tiles the smallest."""
    return [t for t in every(extent) if t == 1 or -(-extent // (t - 1)) > -(-extent // t)]


def tilings(extents: Mapping[str, int], sizes: Callable[[int], list[int]]) -> Iterator[dict[str, int]]:
    for chosen in product(*(sizes(extent) for extent in extents.values())):
        yield dict(zip(extents, chosen))


class Traffic:
    """Fetches and write-backs of one tensor as the nest runs."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.held: frozenset[tuple[int, ...]] = frozenset()
        self.written: set[tuple[int, ...]] = set()
        self.moved = 0
        self.most = 0

    def hold(self, elements: frozenset[tuple[int, ...]], keeps_overlap: bool) -> None:
        if self.tensor.output:
            self.moved += len(self.held)  # write back
            self.written |= self.held
            self.moved += len(elements & self.written)  # a partial sum comes back; a first visit reads nothing
        else:
            self.moved += len(elements - self.held if keeps_overlap else elements)
        self.held = elements
        self.most = max(self.most, len(elements))

    def finish(self) -> int:
        if self.tensor.output:
            self.moved += len(self.held)
        return self.moved * self.tensor.weight


def run_shared(
    extents: Mapping[str, int], tensors: Sequence[Tensor], tile: Mapping[str, int], order: Sequence[str]
) -> tuple[int, int]:
    """(capacity, traffic) with every tensor held as the tile of all indices; loops over tiles in ``order``."""
    pieces = {name: cut(extent, tile[name]) for name, extent in extents.items()}
    loops = [name for name in order if len(pieces[name]) > 1]
    states = [Traffic(tensor) for tensor in tensors]
    before: list[dict[str, int] | None] = [None] * len(tensors)
    for numbers in product(*(range(len(pieces[name])) for name in loops)):
        at = dict.fromkeys(extents, 0) | dict(zip(loops, numbers))
        box = {name: pieces[name][at[name]] for name in extents}
        for i, state in enumerate(states):
            own = [name for name in loops if name in state.tensor.indices]
            now = {name: at[name] for name in own}
            last = before[i]
            if now == last:
                continue
            # What neighbouring tiles share stays, along the tensor's innermost loop.
            step = last is not None and all(now[name] == last[name] for name in own[:-1]) and now[own[-1]] > 0
            state.hold(state.tensor.elements(box), keeps_overlap=step)
            before[i] = now
    return sum(s.most * s.tensor.weight for s in states), sum(s.finish() for s in states)


def run_pieces(
    extents: Mapping[str, int],
    tensors: Sequence[Tensor],
    tile: Mapping[str, int],
    outer: Sequence[str],
    inner: Sequence[str],
    depths: Sequence[int],
) -> tuple[int, int]:
    """The same with single steps inside the tile in the order ``inner``; tensor i is held below ``depths[i]`` of those
    loops. A tensor held as one element is in the multiplier's register. What is still held is not read again."""
    pieces = {name: cut(extent, tile[name]) for name, extent in extents.items()}
    loops = [name for name in outer if len(pieces[name]) > 1]
    states = [Traffic(tensor) for tensor in tensors]
    before: list[Any] = [None] * len(tensors)
    for numbers in product(*(range(len(pieces[name])) for name in loops)):
        at = dict.fromkeys(extents, 0) | dict(zip(loops, numbers))
        box = {name: pieces[name][at[name]] for name in extents}
        for values in product(*(box[name] for name in inner)):
            for i, state in enumerate(states):
                fixed = dict(zip(inner[: depths[i]], values))
                now = [at[name] for name in loops if name in state.tensor.indices]
                now += [value for name, value in fixed.items() if name in state.tensor.indices]
                if now == before[i]:
                    continue
                narrow = {name: range(fixed[name], fixed[name] + 1) if name in fixed else box[name] for name in extents}
                state.hold(state.tensor.elements(narrow), keeps_overlap=True)
                before[i] = now
    held = sum(s.most * s.tensor.weight for s in states if s.most > 1)
    return held, sum(s.finish() for s in states)


def lowest(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for size, moved in sorted(set(points)):
        if not found or moved < found[-1][1]:
            found.append((size, moved))
    return found


def shared_curve(
    extents: Mapping[str, int], tensors: Sequence[Tensor], sizes: Callable[[int], list[int]] = every
) -> list[tuple[int, int]]:
    """All tilings under all orders."""
    return lowest(
        [
            run_shared(extents, tensors, tile, order)
            for tile in tilings(extents, sizes)
            for order in permutations([name for name, extent in extents.items() if tile[name] < extent])
        ]
    )


def piece_curve(extents: Mapping[str, int], tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """All tilings, orders outside and inside, and depths."""
    return lowest(
        [
            run_pieces(extents, tensors, tile, outer, inner, depths)
            for tile in tilings(extents, every)
            for outer in permutations([name for name, extent in extents.items() if tile[name] < extent])
            for inner in permutations([name for name in extents if tile[name] > 1])
            for depths in product(range(len(inner) + 1), repeat=len(tensors))
        ]
    )


# --- two products ----------------------------------------------------------------------------------------------------


def fused_curve(extents: Mapping[str, int]) -> list[tuple[int, int]]:
    """mk,kn->mn then mn,np->mp: tiles of mn completed and consumed one by one, the others kept anywhere or streamed."""
    tensors = [plain(extents, text) for text in ("mk", "kn", "np")] + [plain(extents, "mp", output=True)]
    levels = [None, 0, 1, 2]
    return lowest(
        [
            _run_fused(extents, tensors, tile, order, kept)
            for tile in tilings({name: extents[name] for name in "mn"}, every)
            for order in ("mn", "nm")
            for kept in product(levels, repeat=4)
        ]
    )


def _run_fused(
    extents: Mapping[str, int],
    tensors: Sequence[Tensor],
    tile: Mapping[str, int],
    order: str,
    kept: Sequence[int | None],
) -> tuple[int, int]:
    pieces = {name: cut(extents[name], tile[name]) for name in "mn"}
    states = [Traffic(tensor) for tensor in tensors]
    whole = {name: range(extent) for name, extent in extents.items()}
    for numbers in product(*(range(len(pieces[name])) for name in order)):
        box = {name: pieces[name][number] for name, number in zip(order, numbers)}
        for state, level in zip(states, kept):
            inside = order if level is None else order[:level]
            wanted = state.tensor.elements(whole | {name: box[name] for name in inside})
            if level is None:  # gone when the tile is done
                state.hold(frozenset(), keeps_overlap=False)
            if wanted != state.held:
                state.hold(wanted, keeps_overlap=False)
    passing = [
        _streamed([t for t, level in zip(tensors[i : i + 2], kept[i : i + 2]) if level is None], dict(extents) | tile)
        for i in (0, 2)
    ]
    middle = tile["m"] * tile["n"]
    held = sum(state.most for state, level in zip(states, kept) if level is not None)
    return held + max(passing) + (middle if middle > 1 else 0), sum(state.finish() for state in states)


def _streamed(tensors: Sequence[Tensor], box: Mapping[str, int]) -> int:
    """Least room for some tensors of one product while each is fetched once, over all orders inside the tile."""
    found = []
    for order in permutations(sorted(set().union(*(tensor.indices for tensor in tensors)))):
        room = 0
        for tensor in tensors:
            above = [i for i, name in enumerate(order) if name not in tensor.indices]
            below = order[above[0] if above else len(order) :]
            piece = 1
            for name in below:
                piece *= box[name] if name in tensor.indices else 1
            room += piece if piece > 1 else 0
        found.append(room)
    return min(found)
