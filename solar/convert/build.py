"""Writes a :class:`solar.einsum.Program` op by op; what every rule of every family speaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from solar.einsum import DTYPE_BITS, Op, Tensor
from solar.errors import ConversionError
from solar.graph import LARGEST_JSON_INTEGER, Node, OperatorGraph, Ref, number_text
from solar.graph import Tensor as GraphTensor

Value = str
"""Name of a tensor of the program."""
Number = int | float | bool

FLOATS = frozenset(
    ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2")
)
_LEVELS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


class Build:
    """The program so far. ``values`` maps a graph tensor to the program tensor that holds its present content;
    ``known`` has the contents of integer constants that rules write, since they decide what an ``index`` op reads."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.values: dict[str, Value] = {}
        self.known: dict[Value, tuple[Number, ...]] = {}
        self._producers: dict[str, Op] = {}
        self._live: set[str] | None = None
        self._node: Node | None = None
        self._count = 0

    # Where the writer stands.

    def enter(self, node: Node) -> None:
        """Ops from here on come from ``node``."""
        self._node = node
        self._count = 0

    def fail(self, rule: str) -> ConversionError:
        """An error that names the present node."""
        node = self._node
        return ConversionError(f"{node.op} ({node.name}): {rule}" if node else rule)

    # What a rule reads.

    def operand(self, argument: Any) -> Value:
        """Program tensor of a tensor argument."""
        if not isinstance(argument, Ref):
            raise self.fail(f"expected a tensor argument, found {argument!r}")
        value = self.values.get(argument.tensor)
        if value is None:
            raise self.fail(f"reads {argument.tensor}, a result that the conversion of its producer leaves out")
        return value

    def result(self, position: int = 0) -> GraphTensor:
        """Shape and dtype of what the present node yields (or writes in place)."""
        node = self._node
        assert node is not None
        names = [name for name in node.outputs if name is not None] or list(node.mutates)
        if position >= len(names):
            raise self.fail(f"has no result {position}")
        return self.graph.tensors[names[position]]

    def wanted(self, position: int) -> bool:
        """Whether anything depends on this result of the present node: outputs, or a write in place."""
        if self._live is None:
            self._live = {name for _, name in self.graph.outputs}
            for earlier in reversed(self.graph.nodes):
                if earlier.mutates or self._live.intersection(name for name in earlier.outputs if name):
                    self._live.update((*earlier.reads(), *earlier.mutates))
        node = self._node
        assert node is not None
        return position < len(node.outputs) and node.outputs[position] in self._live

    def shape(self, value: Value) -> tuple[int, ...]:
        """Extents of a program tensor."""
        return self.tensors[value].shape

    def dtype(self, value: Value) -> str:
        """Dtype of a program tensor."""
        return self.tensors[value].dtype

    def producer(self, value: Value) -> Op | None:
        """The op that writes a program tensor; None for an input."""
        return self._producers.get(value)

    # What a rule writes.

    def op(
        self,
        kind: str,
        function: str,
        operands: Sequence[Value],
        results: Sequence[tuple[Sequence[int], str]],
        attributes: Mapping[str, Any] | None = None,
    ) -> tuple[Value, ...]:
        """Append one op; ``results`` gives shape and dtype of each output."""
        assert self._node is not None
        self._count += 1
        name = self._node.name if self._count == 1 else f"{self._node.name}.{self._count}"
        outputs = (name,) if len(results) == 1 else tuple(f"{name}#{i}" for i in range(len(results)))
        for output, (shape, dtype) in zip(outputs, results, strict=True):
            if dtype not in DTYPE_BITS:
                raise self.fail(f"dtype {dtype} is not supported")
            self.tensors[output] = Tensor(tuple(shape), dtype)
        merged = {"source": self._node.op, **(attributes or {})}
        op = Op(name, kind, function, tuple(operands), outputs, merged)
        self.ops.append(op)
        for output in outputs:
            self._producers[output] = op
        return outputs

    def map(self, function: str, *arguments: Value | Number, dtype: str | None = None, **attributes: Any) -> Value:
        """Elementwise ``function``; numbers become ``scalars``. Without ``dtype`` the result has the operands'."""
        operands = [argument for argument in arguments if isinstance(argument, str)]
        scalars = {str(i): number(a) for i, a in enumerate(arguments) if not isinstance(a, str)}
        if scalars:
            attributes["scalars"] = scalars
        shape = broadcast([self.shape(operand) for operand in operands])
        if shape is None:
            raise self.fail(f"{function}: shapes {[list(self.shape(x)) for x in operands]} do not broadcast")
        return self.op("map", function, operands, [(shape, dtype or self.dtype(operands[-1]))], attributes)[0]

    def cast(self, value: Value, dtype: str, *, implicit: bool = True) -> Value:
        """Convert; nothing where the dtype is right already."""
        if self.dtype(value) == dtype:
            return value
        attributes = {"implicit": True} if implicit else {}
        return self.op("cast", "cast", [value], [(self.shape(value), dtype)], attributes)[0]

    def wide(self, value: Value) -> Value:
        """Where PyTorch computes: float32 for narrower floats, else the dtype itself."""
        dtype = self.dtype(value)
        return self.cast(value, "float32") if dtype in FLOATS and DTYPE_BITS[dtype] < 32 else value

    def reduce(
        self, function: str, value: Value, dims: Sequence[int], *, keepdim: bool = False, dtype: str | None = None
    ) -> Value:
        """Reduce over ``dims`` (non-negative); no dimension: the value itself."""
        shape = self.shape(value)
        if not dims and function not in ("any", "all"):
            return value if dtype is None else self.cast(value, dtype)
        kept = [1 if i in dims else n for i, n in enumerate(shape) if keepdim or i not in dims]
        attributes = {"dims": sorted(dims), "keepdim": keepdim}
        return self.op("reduce", function, [value], [(kept, dtype or self.dtype(value))], attributes)[0]

    def view(
        self, function: str, value: Value, shape: Sequence[int], *, dtype: str | None = None, **attributes: Any
    ) -> Value:
        """A view; one that changes nothing is left out."""
        before = self.shape(value)
        idle = {
            "reshape": True,
            "expand": True,
            "permute": attributes.get("dims") == list(range(len(before))),
            "slice": attributes.get("step") == 1,
            "squeeze": True,
            "unsqueeze": True,
        }
        if tuple(shape) == before and dtype in (None, self.dtype(value)) and idle.get(function, False):
            return value
        return self.op("view", function, [value], [(shape, dtype or self.dtype(value))], attributes)[0]

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Row-major reshape (a view in the IR, whatever the layout was)."""
        return self.view("reshape", value, shape)

    def permute(self, value: Value, dims: Sequence[int]) -> Value:
        """Result dimension i is operand dimension ``dims[i]``."""
        shape = self.shape(value)
        return self.view("permute", value, [shape[d] for d in dims], dims=list(dims))

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """Right-aligned broadcast."""
        if broadcast([self.shape(value), tuple(shape)]) != tuple(shape):
            raise self.fail(f"{list(self.shape(value))} does not broadcast to {list(shape)}")
        return self.view("expand", value, shape)

    def slice(self, value: Value, dim: int, start: int, stop: int, step: int = 1) -> Value:
        """``value[start:stop:step]`` along ``dim``, limits inside the extent."""
        shape = list(self.shape(value))
        shape[dim] = max(0, -(-(stop - start) // step))
        return self.view("slice", value, shape, dim=dim, start=start, stop=stop, step=step)

    def select(self, value: Value, dim: int, index: int) -> Value:
        """``value[index]`` along ``dim``; drops the dimension."""
        shape = self.shape(value)
        return self.view("select", value, shape[:dim] + shape[dim + 1 :], dim=dim, index=index)

    def unsqueeze(self, value: Value, dims: Sequence[int]) -> Value:
        """Extents of one at these positions of the result."""
        rest = iter(self.shape(value))
        total = len(self.shape(value)) + len(dims)
        return self.view("unsqueeze", value, [1 if i in dims else next(rest) for i in range(total)], dims=list(dims))

    def copy(
        self, function: str, operands: Sequence[Value], shape: Sequence[int], dtype: str, **attributes: Any
    ) -> Value:
        """Data movement."""
        return self.op("copy", function, operands, [(shape, dtype)], attributes)[0]

    def index(
        self, function: str, operands: Sequence[Value], shape: Sequence[int], dtype: str, **attributes: Any
    ) -> Value:
        """Gather or scatter."""
        return self.op("index", function, operands, [(shape, dtype)], attributes)[0]

    def full(self, shape: Sequence[int], value: Number, dtype: str) -> Value:
        """A tensor of one value."""
        return self.op("create", "full", [], [(shape, dtype)], {"value": number(value)})[0]

    def constant(self, shape: Sequence[int], values: Sequence[Number], dtype: str) -> Value:
        """A tensor of these values, row-major."""
        attributes = {"values": [number(value) for value in values]}
        made = self.op("create", "constant", [], [(shape, dtype)], attributes)[0]
        if dtype == "int64":
            self.known[made] = tuple(values)
        return made

    def einsum(
        self,
        function: str,
        operands: Sequence[Value],
        indices: Mapping[str, int],
        maps: Sequence[Sequence[Any]],
        output: Sequence[str],
        dtype: str,
    ) -> Value:
        """Sum of products. A map entry is an index name or an affine form (:func:`affine`)."""
        attributes = {
            "indices": dict(indices),
            "operands": [[affine((d, 1)) if isinstance(d, str) else d for d in dims] for dims in maps],
            "output": list(output),
        }
        return self.op("einsum", function, operands, [([indices[i] for i in output], dtype)], attributes)[0]


def affine(*terms: tuple[str, int], offset: int = 0) -> dict[str, Any]:
    """``offset + sum of coefficient * index``."""
    return {"terms": [[index, coefficient] for index, coefficient in terms], "offset": offset}


def number(value: Any) -> Number | str:
    """A constant as the IR writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return number_text(value)
    if isinstance(value, int) and abs(value) > LARGEST_JSON_INTEGER:
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value
    raise ConversionError(f"{value!r} is not a number")


def broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Common shape of right-aligned shapes; None where there is none."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[int] = []
    for position in range(rank):
        extents = {shape[position - rank] for shape in shapes if rank - position <= len(shape)} - {1}
        if len(extents) > 1:
            return None
        result.append(extents.pop() if extents else 1)
    return tuple(result)


def promote(build: Build, arguments: Sequence[Any]) -> str:
    """Dtype in which PyTorch compares these arguments (program tensors or numbers): tensors with dimensions come
    first, then 0-d tensors, then Python numbers; a later group only counts where it is of a higher category."""
    groups: list[list[str]] = [[], [], []]
    for argument in arguments:
        if isinstance(argument, str):
            groups[0 if build.shape(argument) else 1].append(build.dtype(argument))
        else:
            dtype = "bool" if isinstance(argument, bool) else "int64" if isinstance(argument, int) else "float32"
            groups[2].append(dtype)
    result: str | None = None
    for group in groups:
        joined: str | None = None
        for dtype in group:
            joined = dtype if joined is None else _join(joined, dtype)
        if joined is not None and (result is None or _category(joined) > _category(result)):
            result = joined
    if result is None:
        raise build.fail("has no argument to take a dtype from")
    return result


def _category(dtype: str) -> int:
    return 0 if dtype == "bool" else 2 if dtype in FLOATS else 1


def _join(a: str, b: str) -> str:
    if a == b:
        return a
    if _category(a) != _category(b):
        return a if _category(a) > _category(b) else b
    if _category(a) == 2:
        if DTYPE_BITS[a] != DTYPE_BITS[b]:
            return a if DTYPE_BITS[a] > DTYPE_BITS[b] else b
        return "float32"
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=_LEVELS.index)


def dim_of(build: Build, dim: int, rank: int) -> int:
    """A dimension as a non-negative number; rank 0 counts as 1."""
    limit = max(rank, 1)
    if not -limit <= dim < limit:
        raise build.fail(f"dimension {dim} is outside rank {rank}")
    return dim % limit


def dims_of(build: Build, dims: Any, rank: int) -> list[int]:
    """Dimensions of a reduction: None or none at all means every one."""
    if isinstance(dims, int):
        dims = (dims,)
    if not dims:
        return list(range(rank))
    return sorted(dim_of(build, d, rank) for d in dims) if rank else []
