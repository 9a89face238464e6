"""Attainable traffic of a whole program, as a plain value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solar.einsum import DTYPE_BITS, Op, Program
from solar.errors import MappingError
from solar.mapper import chains, search
from solar.mapper.curves import Curve
from solar.mapper.space import Space, indexing, space

SCHEMA = "solar.attainable-traffic.v1"
STATEMENT = (
    "Attainable traffic inside one-buffer schedules: an infinite backing store, one buffer, one multiplier, static "
    "loops. Other schedules may do better; this is not a bound, and nothing of it enters T_SOL."
)


def attainable(program: Program, *, capacities: Sequence[int] | None = None) -> dict[str, Any]:
    """Curves of every einsum and of every chain of einsums, the artifact ``attainable-traffic.json``.

    ``einsums``: ``curve`` [[capacity_bytes, traffic_bytes], ...] with one set of tile sizes for all tensors;
    ``compulsory_bytes``, every touched element once; ``knee_bytes``, the least capacity that reaches it; ``candidates``
    of tile sizes, "ceilings" (every ragged tiling) or, where those are too many, "divisors". ``chains``: products whose
    result only the next one reads, with tiles of each tensor's own, fused where that is better;
    ``unfused_compulsory_bytes`` counts the intermediates; what else is read between two products (a bias) counts
    nowhere, and a chain of more than two is cut into products and pairs. Every einsum is taken dense, each operand in
    its own dtype, and an operand that occurs twice counts twice. ``unmapped``: what has no curve, and why.

    ``capacities`` (bytes): give the curves at these only; traffic is None where no schedule fits. Needs NumPy.
    """
    einsums, joined, unmapped = [], [], []
    products = [op for op in program.ops if op.kind == "einsum"]
    forms: dict[str, Space] = {}
    for op in products:
        try:
            form = space(*indexing(program, op))
            curve, kind = search.best_curve(form)
        except MappingError as error:
            unmapped.append({"ops": [op.name], "reason": str(error)})
            continue
        forms[op.name] = form
        einsums.append({"op": op.name, **_entry("shared", kind, search.compulsory(form), curve, capacities)})
    links: dict[str, _Link] = {}
    for op in products:
        reader = _reader(program, op)
        if reader is None or op.name not in forms or reader[0].name not in forms:
            continue
        try:
            links[op.name] = _link(program, op, *reader)
        except MappingError as error:
            unmapped.append({"ops": [op.name, reader[0].name], "reason": str(error)})
    for ops in _chains(links):
        taken = [links[name] for name in ops[:-1]]
        curve = chains.segmented(
            [search.best_curve(forms[name], shared=False)[0] for name in ops], [link.curve for link in taken]
        )
        kind = "divisors" if any(link.kind == "divisors" for link in taken) else "ceilings"
        unfused = sum(search.compulsory(forms[name]) for name in ops)
        floor = unfused - sum(link.intermediate for link in taken)
        entry = _entry("separate", kind, floor, curve, capacities)
        joined.append({"ops": ops, "unfused_compulsory_bytes": -(-unfused // 8), **entry})
    return {"schema": SCHEMA, "statement": STATEMENT, "einsums": einsums, "chains": joined, "unmapped": unmapped}


@dataclass(frozen=True)
class _Link:
    """A product and the one that reads it: their fused curve (bits), and the intermediate's write and read (bits)."""

    reader: str
    curve: Curve
    kind: str
    intermediate: int


def _entry(tiles: str, kind: str, compulsory: int, curve: Curve, capacities: Sequence[int] | None) -> dict[str, Any]:
    """From bits to bytes."""
    floor, found = -(-compulsory // 8), curve.bytes()
    knee = next((size for size, moved in found.points if moved == floor), None)
    points = found.points if capacities is None else [(size, found.at(size)) for size in capacities]
    return {
        "tiles": tiles,
        "candidates": kind,
        "compulsory_bytes": floor,
        "knee_bytes": knee,
        "curve": [list(point) for point in points],
    }


def _reader(program: Program, op: Op) -> tuple[Op, int, tuple[int, ...]] | None:
    """The einsum that alone reads the result, at which operand, and which of the result's dimensions each of its is.

    In between lie casts, functions of the result and of what broadcasts to it (a bias), permutations, and reshapes that
    are undone.
    """
    made = op.outputs[0]
    shape = program.tensors[made].shape
    finals = {name for _, name in program.outputs}
    region = {made: tuple(range(len(shape)))}  # what the result has become: the dimension of it that each one is
    found: tuple[Op, int, tuple[int, ...]] | None = None
    for reader in program.ops:
        inside = [name for name in reader.operands if name in region]
        if not inside:
            continue
        name = inside[0]
        dims, here = region[name], _is_whole(program, name, region, shape)
        if reader.kind == "einsum":
            if found is not None or len(inside) > 1 or not here:
                return None
            found = reader, reader.operands.index(name), dims
        elif reader.kind == "view" and reader.function == "permute" and here:
            region[reader.outputs[0]] = tuple(dims[d] for d in reader.attributes["dims"])
        elif _keeps_order(reader) or _is_pointwise(program, reader, region):
            region[reader.outputs[0]] = dims
        else:
            return None
    return None if finals & region.keys() else found


def _is_whole(program: Program, name: str, region: Mapping[str, tuple[int, ...]], shape: Sequence[int]) -> bool:
    return program.tensors[name].shape == tuple(shape[d] for d in region[name])


def _keeps_order(op: Op) -> bool:
    return op.kind == "view" and op.function in ("reshape", "squeeze", "unsqueeze")


def _is_pointwise(program: Program, op: Op, region: Mapping[str, tuple[int, ...]]) -> bool:
    """A function of tensors that the result has become, all laid out alike, and of smaller ones that broadcast."""
    result = program.tensors[op.outputs[0]]
    inside = [name for name in op.operands if name in region]
    alike = op.kind in ("map", "cast") and len({region[name] for name in inside}) == 1
    return alike and all(
        program.tensors[name].shape == result.shape
        if name in region
        else program.tensors[name].elements < result.elements
        for name in op.operands
    )


def _link(program: Program, op: Op, reader: Op, position: int, dims: tuple[int, ...]) -> _Link:
    written = op.attributes["output"]
    renamed = {}
    for form, dim in zip(reader.attributes["operands"][position], dims, strict=True):
        for index, _ in form["terms"]:
            renamed[index] = written[dim]
    chain = chains.pair(indexing(program, op), indexing(program, reader), position, renamed)
    curve, kind = chains.fused(chain)
    between = program.tensors[op.outputs[0]], program.tensors[reader.operands[position]]
    return _Link(reader.name, curve, kind, sum(t.elements * DTYPE_BITS[t.dtype] for t in between))


def _chains(links: Mapping[str, _Link]) -> list[list[str]]:
    """Paths along the links, from every product that is not read into another one's chain."""
    later = {link.reader for link in links.values()}
    found = []
    for name in links:
        if name not in later:
            path = [name]
            while path[-1] in links:
                path.append(links[path[-1]].reader)
            found.append(path)
    return found
