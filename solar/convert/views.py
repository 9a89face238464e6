"""Views: index maps without arithmetic. Which of them really share memory is the graph's word, not these rules'."""

from __future__ import annotations

import math
from collections.abc import Callable

from solar.convert.build import Build, Value, dim_of
from solar.graph import Node, Ref

Rule = Callable[[Build, Node], list[Value]]


def _self(build: Build, node: Node) -> Value:
    return build.operand(node.arguments["self"])


def _reshape(build: Build, node: Node) -> list[Value]:
    if node.op == "aten.view.dtype":
        return [bitcast(build, _self(build, node), build.result().shape, build.result().dtype)]
    return [build.reshape(_self(build, node), build.result().shape)]


def bitcast(build: Build, value: Value, shape: tuple[int, ...], dtype: str) -> Value:
    """The same bits read as another dtype."""
    if build.dtype(value) == dtype:
        return value
    return build.view("bitcast", value, shape, dtype=dtype)


def _permute(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    rank = len(build.shape(value))
    return [build.permute(value, [dim_of(build, d, rank) for d in node.arguments["dims"]])]


def _transpose(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    rank = len(build.shape(value))
    first, second = (
        dim_of(build, node.arguments.get(k, d), rank) for k, d in (("dim0", 0), ("dim1", min(1, rank - 1)))
    )
    dims = list(range(rank))
    if rank:
        dims[first], dims[second] = second, first
    return [build.permute(value, dims)]


def _unsqueeze(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    return [build.unsqueeze(value, [dim_of(build, node.arguments["dim"], len(build.shape(value)) + 1)])]


def _squeeze(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    shape = build.shape(value)
    dims = node.arguments.get("dim", tuple(range(len(shape))))
    chosen = sorted({dim_of(build, d, len(shape)) for d in ((dims,) if isinstance(dims, int) else dims)})
    dropped = [d for d in chosen if d < len(shape) and shape[d] == 1]
    return [build.view("squeeze", value, [n for i, n in enumerate(shape) if i not in dropped], dims=dropped)]


def _expand(build: Build, node: Node) -> list[Value]:
    return [build.expand(_self(build, node), build.result().shape)]


def limits(node: Node, extent: int, end: str = "end") -> tuple[int, int, int]:
    """Start, stop and step of a slice, inside the extent."""
    step = node.arguments.get("step", 1)
    start, stop, _ = slice(node.arguments.get("start"), node.arguments.get(end)).indices(extent)
    return start, max(start, stop), step


def _slice(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    dim = dim_of(build, node.arguments.get("dim", 0), len(build.shape(value)))
    return [build.slice(value, dim, *limits(node, build.shape(value)[dim]))]


def _select(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    dim = dim_of(build, node.arguments["dim"], len(build.shape(value)))
    return [build.select(value, dim, node.arguments["index"] % build.shape(value)[dim])]


def _split(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    dim = dim_of(build, node.arguments.get("dim", 0), len(build.shape(value)))
    extent = build.shape(value)[dim]
    sizes = node.arguments.get("split_sizes", node.arguments.get("split_size"))
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - start) for start in range(0, extent, sizes)] or [0]
    parts, start = [], 0
    for size in sizes:
        parts.append(build.slice(value, dim, start, start + size))
        start += size
    return parts


def _unbind(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    dim = dim_of(build, node.arguments.get("dim", 0), len(build.shape(value)))
    return [build.select(value, dim, i) for i in range(build.shape(value)[dim])]


def _diagonal(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    rank = len(build.shape(value))
    first, second = (dim_of(build, node.arguments.get(k, d), rank) for k, d in (("dim1", 0), ("dim2", 1)))
    attributes = {"offset": node.arguments.get("offset", 0), "dim1": first, "dim2": second}
    return [build.view("diagonal", value, build.result().shape, **attributes)]


def _unfold(build: Build, node: Node) -> list[Value]:
    value = _self(build, node)
    dim = dim_of(build, node.arguments["dimension"], len(build.shape(value)))
    return [windows(build, value, dim, node.arguments["size"], node.arguments["step"])]


def windows(build: Build, value: Value, dim: int, size: int, step: int, dilation: int = 1) -> Value:
    """Windows along ``dim``; the position inside a window becomes the last dimension."""
    shape = list(build.shape(value))
    shape[dim] = (shape[dim] - (size - 1) * dilation - 1) // step + 1
    return build.view("unfold", value, [*shape, size], dim=dim, size=size, step=step, dilation=dilation)


def _as_strided(build: Build, node: Node) -> list[Value]:
    """Strides count in memory, and the IR has none: the operand has to lie there row-major and whole."""
    source = build.graph.tensors[node.arguments["self"].tensor]
    if not source.contiguous:
        raise build.fail("as_strided of a tensor that does not lie row-major in memory")
    offset = node.arguments.get("storage_offset", source.offset) - source.offset
    size, stride = list(node.arguments["size"]), list(node.arguments["stride"])
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if offset < 0 or (math.prod(size) and last >= math.prod(source.shape)):
        raise build.fail("as_strided reaches outside of its operand")
    return [build.view("as_strided", _self(build, node), size, stride=stride, offset=offset)]


def _same(build: Build, node: Node) -> list[Value]:
    return [_self(build, node)]


def _to_copy(build: Build, node: Node) -> list[Value]:
    return [build.cast(_self(build, node), build.result().dtype, implicit=False)]


def _convert(build: Build, node: Node) -> list[Value]:
    argument = next(value for value in node.arguments.values() if isinstance(value, Ref))
    return [build.cast(build.operand(argument), build.result().dtype, implicit=False)]


RULES: dict[str, Rule] = {
    "view": _reshape,
    "_unsafe_view": _reshape,
    "_reshape_alias": _reshape,
    "reshape": _reshape,
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "slice": _slice,
    "select": _select,
    "split": _split,
    "split_with_sizes": _split,
    "unsafe_split": _split,
    "unsafe_split_with_sizes": _split,
    "unbind": _unbind,
    "diagonal": _diagonal,
    "unfold": _unfold,
    "as_strided": _as_strided,
    "detach": _same,
    "alias": _same,
    "lift": _same,
    "lift_fresh": _same,
    "lift_fresh_copy": _same,
    "_to_copy": _to_copy,
    "convert_element_type": _convert,
}
RULES |= {
    f"{name}_copy": RULES[name]
    for name in (
        "view",
        "permute",
        "transpose",
        "t",
        "expand",
        "slice",
        "select",
        "diagonal",
        "squeeze",
        "unsqueeze",
        "unfold",
        "as_strided",
    )
}
