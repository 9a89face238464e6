"""The extended-einsum IR: what a reference computes, as few kinds of operations as one accounting can serve.

A :class:`Program` lists operations in execution order over named tensors. Kinds and their attributes:

``einsum``   products summed over indices. ``attributes``: ``indices`` {name: extent}, ``operands`` (per operand, per
             dimension, an affine form), ``output`` (index name per output dimension). An affine form is
             ``{"terms": [[index, coefficient], ...], "offset": int}``; a position outside the operand reads as zero
             (padding). One operand makes a plain sum; a matmul, a (grouped, strided, padded) convolution and a
             contraction of three tensors are all this kind.
``map``      ``function`` elementwise over operands that broadcast right-aligned to the output; scalars in attributes.
``reduce``   ``function`` over ``dims`` (``keepdim``): sum, amax, amin, prod, any, all, argmax, argmin.
``view``     an index map without arithmetic or copy: permute, reshape, slice, select, expand, squeeze, unsqueeze,
             diagonal, as_strided. ``attributes`` hold its arguments.
``copy``     data movement that must materialise: clone/contiguous, cat, pad, flip, roll, repeat.
``index``    gather, index_select, embedding, scatter ...: operand 0 is the data, the others are indices or values.
``scan``     cumulative operations along ``dim``.
``sort``     sort, topk, argsort along ``dim``.
``create``   a tensor from nothing: full, arange, eye, tril mask; ``random`` with its declared distribution.
``cast``     dtype conversion of one operand.
``opaque``   priced by a declared operation count (``ops``), not decomposed.

:func:`to_text` writes a program for people, one line an operation; :func:`to_dict` writes the artifact, whose form is
:data:`JSON_SCHEMA`; :func:`from_dict` reads it back and trusts nothing.

Nothing here needs PyTorch or NumPy; a bound can be recomputed from this file alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solar.catalogue import check_op, is_affine
from solar.errors import GraphError

SCHEMA = "solar.einsum-graph.v1"
KINDS = ("einsum", "map", "reduce", "view", "copy", "index", "scan", "sort", "create", "cast", "opaque")

# Storage bits of one element. ``float4_e2m1fn_x2`` is PyTorch's: a pair of numbers is one element.
DTYPE_BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8,
    "float8_e8m0fnu": 8, "float4_e2m1fn_x2": 8, "int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8, "bool": 8,
}  # fmt: skip

# Inputs that are the same in every draw: 1 where column <= row of the last two dimensions, else 0.
STRUCTURES = ("lower_triangular",)


@dataclass(frozen=True)
class Tensor:
    """Shape and dtype of one value. Layout is not part of the IR: views are operations."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return (self.elements * DTYPE_BITS[self.dtype] + 7) // 8


@dataclass(frozen=True)
class Op:
    """One operation; ``name`` is unique, ``operands`` and ``outputs`` are tensor names in order."""

    name: str
    kind: str
    function: str
    operands: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """A whole reference for one workload.

    ``inputs`` and ``outputs``: (declared name, tensor name) in declared order. ``values``: known contents of small
    integer inputs (row-major), by tensor name; they decide work. ``aliases``: output name -> input name that it is
    (in-place). ``path``: the extraction path that this came from. ``structures``: inputs whose every draw is the same
    mask, by tensor name (:data:`STRUCTURES`); a kernel may build it in, so it costs nothing to read.
    """

    path: str
    tensors: Mapping[str, Tensor]
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    ops: tuple[Op, ...]
    values: Mapping[str, tuple[int | float | bool, ...]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    structures: Mapping[str, str] = field(default_factory=dict)

    def producers(self) -> dict[str, Op]:
        """The operation that writes each tensor; inputs have none."""
        return {name: op for op in self.ops for name in op.outputs}

    def consumers(self) -> dict[str, list[Op]]:
        """The operations that read each tensor, in order."""
        readers: dict[str, list[Op]] = {name: [] for name in self.tensors}
        for op in self.ops:
            for name in op.operands:
                readers[name].append(op)
        return readers


def validate(program: Program) -> Program:
    """Raise :class:`GraphError` unless every op is of a known kind, defined before use, and outputs exist."""
    defined: set[str] = set()
    names = [op.name for op in program.ops]
    if len(set(names)) != len(names):
        raise GraphError(f"ops.{next(name for name in names if names.count(name) > 1)}: two operations of this name")
    for declared, name in program.inputs:
        if name not in program.tensors:
            raise GraphError(f"inputs.{declared}: unknown tensor {name!r}")
        defined.add(name)
    for op in program.ops:
        where = f"ops.{op.name}"
        if op.kind not in KINDS:
            raise GraphError(f"{where}: unknown kind {op.kind!r}")
        for name in op.operands:
            if name not in program.tensors:
                raise GraphError(f"{where}: unknown operand {name!r}")
            if name not in defined:
                raise GraphError(f"{where}: operand {name!r} is used before it is defined (a cycle, or wrong order)")
        for name in op.outputs:
            if name not in program.tensors:
                raise GraphError(f"{where}: unknown output {name!r}")
            if name in defined:
                raise GraphError(f"{where}: {name!r} is defined twice")
            defined.add(name)
        given, made = ([program.tensors[name].shape for name in names] for names in (op.operands, op.outputs))
        check_op(where, op.kind, op.function, op.attributes, given, made)
        if op.kind == "einsum":
            _validate_einsum(program, op, where)
    for name, tensor in program.tensors.items():
        if tensor.dtype not in DTYPE_BITS:
            raise GraphError(f"tensors.{name}: unknown dtype {tensor.dtype!r}")
        if any(extent < 0 for extent in tensor.shape):
            raise GraphError(f"tensors.{name}: negative extent")
        if name not in defined:
            raise GraphError(f"tensors.{name}: no input and no operation defines it")
    for declared, name in program.outputs:
        if name not in defined:
            raise GraphError(f"outputs.{declared}: {name!r} is never written")
    for name, values in program.values.items():
        if name not in program.tensors or len(values) != program.tensors[name].elements:
            raise GraphError(
                f"values.{name}: {len(values)} values, of a tensor that is not there or has another number"
            )
    for declared, source in program.aliases.items():
        if declared not in dict(program.outputs) or source not in dict(program.inputs):
            raise GraphError(f"aliases.{declared}: no output {declared!r}, or no input {source!r}")
    for name, structure in program.structures.items():
        if structure not in STRUCTURES or name not in {tensor for _, tensor in program.inputs}:
            raise GraphError(f"structures.{name}: not an input, or none of {', '.join(STRUCTURES)}")
    return program


def _validate_einsum(program: Program, op: Op, where: str) -> None:
    indices = op.attributes.get("indices")
    maps = op.attributes.get("operands")
    output = op.attributes.get("output")
    if not isinstance(indices, Mapping) or not isinstance(maps, Sequence) or not isinstance(output, Sequence):
        raise GraphError(f"{where}: an einsum has indices, operands and output")
    if any(not isinstance(index, str) for index in output):
        raise GraphError(f"{where}: attributes: output {output!r} is not a list of names")
    if len(maps) != len(op.operands):
        raise GraphError(f"{where}: {len(op.operands)} operands, {len(maps)} index maps")
    for name, dims in zip(op.operands, maps, strict=True):
        if not isinstance(dims, Sequence) or not all(is_affine(form) for form in dims):
            raise GraphError(f"{where}: attributes: the map of operand {name!r} is not a list of {{terms, offset}}")
        if len(dims) != len(program.tensors[name].shape):
            rank = len(program.tensors[name].shape)
            raise GraphError(f"{where}: operand {name!r} has rank {rank}, its map {len(dims)}")
        for form in dims:
            for index, coefficient in form["terms"]:
                if index not in indices:
                    raise GraphError(f"{where}: unknown index {index!r}")
                if type(coefficient) is not int:
                    raise GraphError(f"{where}: coefficient {coefficient!r} of {index!r} is not an integer")
            if type(form["offset"]) is not int:
                raise GraphError(f"{where}: offset {form['offset']!r} is not an integer")
    for index, extent in indices.items():
        if type(extent) is not int or extent < 0:
            raise GraphError(f"{where}: index {index!r} has extent {extent!r}")
    shape = tuple(indices.get(index, -1) for index in output)
    if shape != program.tensors[op.outputs[0]].shape:
        raise GraphError(f"{where}: output indices give {shape}, tensor has {program.tensors[op.outputs[0]].shape}")


def to_dict(program: Program) -> dict[str, Any]:
    """Plain JSON value, the artifact ``einsum-graph``."""
    # Written only where there is one, so that other graphs keep their bytes.
    structures = {"structures": dict(program.structures)} if program.structures else {}
    return {
        "schema": SCHEMA,
        "path": program.path,
        **structures,
        "tensors": {n: {"shape": list(t.shape), "dtype": t.dtype} for n, t in program.tensors.items()},
        "inputs": [list(pair) for pair in program.inputs],
        "outputs": [list(pair) for pair in program.outputs],
        "ops": [
            {
                "name": op.name,
                "kind": op.kind,
                "function": op.function,
                "operands": list(op.operands),
                "outputs": list(op.outputs),
                "attributes": _plain(op.attributes),
            }
            for op in program.ops
        ],
        "values": {name: list(values) for name, values in program.values.items()},
        "aliases": dict(program.aliases),
    }


def from_dict(value: Mapping[str, Any]) -> Program:
    """Inverse of :func:`to_dict`; validates."""
    _fields("einsum-graph", value, _ARTIFACT["properties"], ("structures",))
    if value["schema"] != SCHEMA:
        raise GraphError(f"schema: {value['schema']!r}, expected {SCHEMA!r}")
    _typed("einsum-graph", value, str, "path")
    _typed("einsum-graph", value, list, "inputs", "outputs", "ops")
    _typed("einsum-graph", {"structures": {}, **value}, dict, "tensors", "values", "aliases", "structures")
    tensors = {}
    for name, tensor in value["tensors"].items():
        _fields(f"tensors.{name}", tensor, ("shape", "dtype"))
        _typed(f"tensors.{name}", tensor, str, "dtype")
        shape = _listed_of(f"tensors.{name}: shape", tensor["shape"], int, "integers")
        tensors[name] = Tensor(shape, tensor["dtype"])
    _typed("values", value["values"], list, *value["values"])
    for name in ("aliases", "structures"):
        _typed(name, value.get(name, {}), str, *value.get(name, {}))
    return validate(
        Program(
            path=value["path"],
            tensors=tensors,
            inputs=_pairs("inputs", value["inputs"]),
            outputs=_pairs("outputs", value["outputs"]),
            ops=tuple(_op(position, op) for position, op in enumerate(value["ops"])),
            values={name: tuple(v) for name, v in value["values"].items()},
            aliases=dict(value["aliases"]),
            structures=dict(value.get("structures", {})),
        )
    )


def _op(position: int, value: Any) -> Op:
    name = value.get("name", position) if isinstance(value, dict) else position
    where = f"ops.{name}"
    _fields(where, value, _OP["properties"])
    _typed(where, value, str, "name", "kind", "function")
    _typed(where, value, dict, "attributes")
    operands, outputs = (_listed_of(f"{where}: {key}", value[key], str, "names") for key in ("operands", "outputs"))
    return Op(value["name"], value["kind"], value["function"], operands, outputs, value["attributes"])


def _fields(where: str, value: Any, known: Iterable[str], optional: Iterable[str] = ()) -> None:
    """A mapping of exactly these fields."""
    if not isinstance(value, dict):
        raise GraphError(f"{where}: not a mapping")
    for key in known:
        if key not in value:
            raise GraphError(f"{where}: missing field {key!r}")
    for key in value:
        if key not in {*known, *optional}:
            raise GraphError(f"{where}: unknown field {key!r}")


def _typed(where: str, value: Mapping[str, Any], kind: type, *fields: str) -> None:
    said: Mapping[type, str] = {str: "text", list: "a list", dict: "a mapping"}
    for name in fields:
        if not isinstance(value[name], kind):
            raise GraphError(f"{where}: {name}: not {said[kind]}")


def _pairs(where: str, values: list[Any]) -> tuple[tuple[str, str], ...]:
    pairs = [_listed_of(where, pair, str, "two names") for pair in values]
    if any(len(pair) != 2 for pair in pairs):
        raise GraphError(f"{where}: not a list of pairs [declared name, tensor name]")
    return tuple((declared, tensor) for declared, tensor in pairs)


def _listed_of(where: str, values: Any, kind: type, said: str) -> tuple[Any, ...]:
    if not isinstance(values, list) or any(type(value) is not kind for value in values):
        raise GraphError(f"{where}: {values!r} is not a list of {said}")
    return tuple(values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# For people.

_SHORT = {"bfloat16": "bf16", "bool": "bool", "float4_e2m1fn_x2": "f4e2m1fn_x2"}
# Attributes that the line shows in another way, or that do not change what is computed.
_UNSAID = frozenset(("source", "implicit", "scalars", "indices", "operands", "output"))
# Contents beyond so many elements are told by their number and checksum.
_LONGEST = 16


def to_text(program: Program) -> str:
    """The program as text: inputs, one line an operation, outputs.

    ``%t = einsum[mk,kn->mn] %a %b : f32[64,32]``: results, kind and function, operands and constants in order of the
    function's arguments, attributes, types. An index of an einsum that only windows use has its extent behind it.
    """
    lines = [f"program {program.path}"]
    for declared, name in program.inputs:
        extra = f" {program.structures[name]}" if name in program.structures else ""
        lines.append(f"%{name} = input {declared}{extra} : {_type(program, name)}")
    lines += [f"known %{name} = {_said(list(values))}" for name, values in program.values.items()]
    lines += [_line(program, op) for op in program.ops]
    for declared, name in program.outputs:
        written = f" written to {program.aliases[declared]}" if declared in program.aliases else ""
        lines.append(f"output {declared} = %{name}{written} : {_type(program, name)}")
    return "\n".join(lines) + "\n"


def _type(program: Program, name: str) -> str:
    tensor = program.tensors[name]
    short = tensor.dtype.replace("uint", "u").replace("int", "i").replace("float", "f").replace("f8_", "f8")
    return f"{_SHORT.get(tensor.dtype, short)}[{','.join(map(str, tensor.shape))}]"


def _line(program: Program, op: Op) -> str:
    what = op.kind if op.function == op.kind else f"{op.kind}.{op.function}"
    if op.kind == "einsum":
        what = ("einsum" if op.function == "matmul" else what) + _expression(program, op)
    scalars = {int(position): value for position, value in op.attributes.get("scalars", {}).items()}
    operands, arguments = iter(op.operands), []
    for position in range(max([len(op.operands) + len(scalars), *(p + 1 for p in scalars)])):
        name = None if position in scalars else next(operands, None)
        arguments.append(str(scalars[position]) if position in scalars else "_" if name is None else f"%{name}")
    rest = ", ".join(f"{key}={_said(value)}" for key, value in sorted(op.attributes.items()) if key not in _UNSAID)
    results = ", ".join(f"%{name}" for name in op.outputs)
    types = ", ".join(_type(program, name) for name in op.outputs)
    return " ".join([results, "=", what, *arguments, *([f"{{{rest}}}"] if rest else []), ":", types])


def _expression(program: Program, op: Op) -> str:
    """``[mk,kn->mn]``, with spaces where an index has a longer name; ``2y+r-1`` in brackets for an affine form."""
    extents, output = op.attributes["indices"], op.attributes["output"]
    between = "" if all(len(index) == 1 for index in extents) else " "
    plain: set[tuple[str, int]] = set()
    maps = []
    for name, forms in zip(op.operands, op.attributes["operands"], strict=True):
        for form, size in zip(forms, program.tensors[name].shape, strict=True):
            if _is_plain(form):
                plain.add((form["terms"][0][0], size))
        maps.append(between.join(_form(form) for form in forms))
    hidden = [f"{i}={n}" for i, n in extents.items() if i not in output and (i, n) not in plain]
    return f"[{','.join(maps)}->{between.join(output)}{''.join(f' {item}' for item in hidden)}]"


def _is_plain(form: Mapping[str, Any]) -> bool:
    return not form["offset"] and len(form["terms"]) == 1 and form["terms"][0][1] == 1


def _form(form: Mapping[str, Any]) -> str:
    if _is_plain(form):
        return str(form["terms"][0][0])
    terms = [f"{'' if c == 1 else '-' if c == -1 else c}{index}" for index, c in form["terms"]]
    if form["offset"] or not terms:
        terms.append(str(form["offset"]))
    return f"({'+'.join(terms).replace('+-', '-')})"


def _said(value: Any) -> str:
    """An attribute's value, short."""
    if isinstance(value, (list, tuple)):
        text = f"[{','.join(_said(item) for item in value)}]"
        return text if len(value) <= _LONGEST else f"[{len(value)} values, crc32 {zlib.crc32(text.encode()):08x}]"
    return str(value)


# For machines.


def _listed(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _keyed(items: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": items}


def _record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_NAME = {"type": "string"}
_PAIR = {"type": "array", "items": _NAME, "minItems": 2, "maxItems": 2}
_EXTENT = {"type": "integer", "minimum": 0}
_TERM = {"type": "array", "prefixItems": [_NAME, {"type": "integer"}], "minItems": 2, "maxItems": 2}
_AFFINE = _record(terms=_listed(_TERM), offset={"type": "integer"})
_EINSUM = {
    "if": {"properties": {"kind": {"const": "einsum"}}},
    "then": {
        "properties": {
            "attributes": {
                "properties": {
                    "indices": _keyed(_EXTENT),
                    "operands": _listed(_listed(_AFFINE)),
                    "output": _listed(_NAME),
                },
                "required": ["indices", "operands", "output"],
            }
        }
    },
}
_OP = _record(
    name=_NAME,
    kind={"enum": list(KINDS)},
    function=_NAME,
    operands=_listed(_NAME),
    outputs=_listed(_NAME),
    attributes={"type": "object"},
)
_ARTIFACT = _record(
    schema={"const": SCHEMA},
    path=_NAME,
    tensors=_keyed(_record(shape=_listed(_EXTENT), dtype={"enum": sorted(DTYPE_BITS)})),
    inputs=_listed(_PAIR),
    outputs=_listed(_PAIR),
    ops=_listed({**_OP, **_EINSUM}),
    values=_keyed(_listed({"type": ["number", "boolean"]})),
    aliases=_keyed(_NAME),
)
# JSON Schema (draft 2020-12) of the artifact. What it cannot say, names that exist, order, ranks and numbers that
# agree, :func:`validate` checks; attributes by kind and function are listed in :mod:`solar.convert`.
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": SCHEMA,
    **_ARTIFACT,
    "properties": {**_ARTIFACT["properties"], "structures": _keyed({"enum": list(STRUCTURES)})},
}
