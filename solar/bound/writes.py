"""What an in-place output changes of the input that it is.

A reference that writes a view of a tensor records the write on the view and puts the result back: into a slice, or
through the inverse of a permutation. The walk goes back over both to the tensor as it came, so that a cache of
which four rows are written through two views counts four rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solar.bound import regions as rg
from solar.bound.copies import written_by
from solar.bound.gathers import scattered
from solar.bound.regions import Region, everything
from solar.bound.views import pull_view
from solar.einsum import Op, Program

# Copies that put a view back, by the view that they put back.
_PUT_BACK = {"select_scatter": "select", "slice_scatter": "slice", "diagonal_scatter": "diagonal"}
_RESHAPES = frozenset(("reshape", "squeeze", "unsqueeze"))

# Views after each other: function, what it is told, and the shape before it.
_Views = tuple[tuple[str, Any, tuple[int, ...]], ...]


def changed(program: Program, name: str, original: str | None) -> Region:
    """Part of an in-place output ``name`` that the reference writes of the input ``original``; all of it where that
    does not show."""
    found = None if original is None else _changed(program, program.producers(), name, (original, ()))
    return (everything(program.tensors[name].shape),) if found is None else found


def last_writes(program: Program) -> frozenset[str]:
    """Operations that write an in-place output, or a view of one that is put back, with nothing written after them."""
    final = {name for declared, name in program.outputs if declared in program.aliases}
    found: set[str] = set()
    for op in reversed(program.ops):
        if final & set(op.outputs):
            found.add(op.name)
            if op.function in _PUT_BACK:
                final.add(op.operands[1])
            elif op.kind == "view" and op.function in ("permute", *_RESHAPES):
                final.add(op.operands[0])
    return frozenset(found)


def _changed(
    program: Program, producers: Mapping[str, Op], name: str, origin: tuple[str, _Views]
) -> Region | None:  # fmt: skip
    """Part of a tensor that may differ from views of another one; None where they are not compared."""
    written: Region = ()
    root, views = origin
    while _viewed(program, producers, name) != origin:
        op = producers.get(name)
        if op is None:
            return None
        shape = program.tensors[name].shape
        given = program.tensors[op.operands[0]].shape if op.operands else ()
        if op.kind == "index" and op.function in ("scatter", "index_put", "index_add"):
            parts = scattered(program, op, shape)[0]
        elif op.kind == "copy" and op.function in _PUT_BACK:
            view, attributes = _PUT_BACK[op.function], op.attributes
            inner = _changed(program, producers, op.operands[1], (root, _after(views, view, attributes, shape, ())))
            parts = written_by(op.function, attributes, shape)
            if inner is not None:
                parts = [part for block in inner for part in pull_view(view, attributes, block, shape, (1, 1))]
        elif op.kind == "view" and op.function == "permute":
            dims = op.attributes["dims"]
            inverse = {"dims": [dims.index(i) for i in range(len(dims))]}
            return _back(
                program,
                producers,
                op,
                written,
                (root, _after(views, "permute", inverse, shape, given)),
                "permute",
                inverse,
            )
        elif op.kind == "view" and op.function in _RESHAPES:
            return _back(
                program, producers, op, written, (root, _after(views, "reshape", {}, shape, given)), "reshape", {}
            )
        else:
            return None
        if parts is None:
            return None
        written = rg.unite(written, tuple(parts))
        name = op.operands[0]
    return written


def _back(
    program: Program, producers: Mapping[str, Op], op: Op, written: Region, origin: tuple[str, _Views], inverse: str,
    attributes: Mapping[str, Any],
) -> Region | None:  # fmt: skip
    """The same through a view that keeps all elements, whose operand is the ``inverse`` view of its result."""
    inner = _changed(program, producers, op.operands[0], origin)
    if inner is None:
        return None
    shape = program.tensors[op.outputs[0]].shape
    parts = [part for block in inner for part in pull_view(inverse, attributes, block, shape, (1, 1))]
    return rg.unite(written, tuple(parts))


def _viewed(program: Program, producers: Mapping[str, Op], name: str) -> tuple[str, _Views]:
    """The tensor that a tensor is a view of, and the views."""
    chain = []
    while name in producers and producers[name].kind == "view" and producers[name].function != "bitcast":
        chain.append(producers[name])
        name = chain[-1].operands[0]
    views: _Views = ()
    for op in reversed(chain):
        before, after = (program.tensors[n].shape for n in (op.operands[0], op.outputs[0]))
        views = _after(views, op.function, op.attributes, before, after)
    return name, views


def _after(
    views: _Views, function: str, attributes: Mapping[str, Any], before: tuple[int, ...], after: tuple[int, ...]
) -> _Views:
    """One more view; permutations and reshapes after each other are one, or none."""
    last = views[-1] if views else ("", (), ())
    if function in _RESHAPES:
        if last[0] == "reshape":
            views, before = views[:-1], last[2]
        return views if before == after else (*views, ("reshape", after, before))
    if function == "permute":
        dims = tuple(attributes["dims"])
        if last[0] == "permute":
            dims = tuple(last[1][i] for i in dims)
            views, before = views[:-1], last[2]
        return views if dims == tuple(range(len(dims))) else (*views, ("permute", dims, before))
    keys = ("dim", "index", "start", "stop", "step", "dim1", "dim2", "offset", "dims", "dilation", "size")
    told = tuple((key, repr(attributes[key])) for key in keys if key in attributes)
    return (*views, (function, (told, after if function not in _PUT_BACK.values() else ()), before))
