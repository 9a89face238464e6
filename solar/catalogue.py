"""Functions of the IR by kind: operands, results and attributes of each, as :mod:`solar.convert` writes them out.

Opaque functions are declared by whoever writes them and are not listed. Nothing here needs PyTorch or NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solar.errors import GraphError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """``arguments``: least and greatest number, constants counted in (None: no limit); ``attributes``: required."""

    arguments: tuple[int, int | None]
    attributes: tuple[str, ...] = ()
    results: int = 1


_ONE, _TWO, _THREE, _SOME = (1, 1), (2, 2), (3, 3), (1, None)
_UNARY = """neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal erf erfc erfinv sin cos tan asin acos
    atan sinh cosh tanh asinh acosh atanh sigmoid relu floor ceil round trunc frac lgamma digamma isnan isinf isposinf
    isneginf isfinite signbit logical_not bitwise_not"""
_BINARY = """add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot eq ne lt le gt ge
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    copysign nextafter heaviside"""
_REDUCTIONS = "sum prod amax amin any all argmax argmin"

FUNCTIONS: Mapping[str, Mapping[str, Signature]] = {
    "einsum": {
        name: Signature(_SOME) for name in ("matmul", "convolution", "convolution_weight", "columns", "window_sum")
    },
    "map": {
        **{name: Signature(_ONE) for name in _UNARY.split()},
        **{name: Signature(_TWO) for name in _BINARY.split()},
        "where": Signature(_THREE),
        "clamp": Signature((1, 3)),
        "tril": Signature(_ONE, ("diagonal",)),
        "triu": Signature(_ONE, ("diagonal",)),
    },
    "reduce": {
        **{name: Signature(_ONE, ("dims", "keepdim")) for name in _REDUCTIONS.split()},
        "fold": Signature(_ONE, ("dims", "keepdim", "spatial", "stride", "dilation", "padding")),
    },
    "view": {
        "permute": Signature(_ONE, ("dims",)),
        "reshape": Signature(_ONE),
        "slice": Signature(_ONE, ("dim", "start", "stop", "step")),
        "select": Signature(_ONE, ("dim", "index")),
        "expand": Signature(_ONE),
        "squeeze": Signature(_ONE, ("dims",)),
        "unsqueeze": Signature(_ONE, ("dims",)),
        "diagonal": Signature(_ONE, ("offset", "dim1", "dim2")),
        "unfold": Signature(_ONE, ("dim", "size", "step", "dilation")),
        "bitcast": Signature(_ONE),
        "as_strided": Signature(_ONE, ("stride", "offset")),
    },
    "copy": {
        "clone": Signature(_ONE),
        "cat": Signature(_SOME, ("dim",)),
        "pad": Signature(_ONE, ("before", "after", "value")),
        "flip": Signature(_ONE, ("dims",)),
        "roll": Signature(_ONE, ("shifts", "dims")),
        "repeat": Signature(_ONE, ("repeats",)),
        "slice_scatter": Signature(_TWO, ("dim", "start", "stop", "step")),
        "select_scatter": Signature(_TWO, ("dim", "index")),
        "diagonal_scatter": Signature(_TWO, ("offset", "dim1", "dim2")),
        "as_strided_scatter": Signature(_TWO, ("stride", "offset")),
    },
    "index": {
        "gather": Signature(_TWO, ("dim",)),
        "index_select": Signature(_TWO, ("dim",)),
        "embedding": Signature(_TWO),
        "index": Signature((2, None), ("dims",)),
        "scatter": Signature(_THREE, ("dim", "reduce")),
        "index_put": Signature((2, None), ("dims", "accumulate")),
        "index_add": Signature(_THREE, ("dim",)),
        "searchsorted": Signature(_TWO, ("right",)),
    },
    "scan": {
        **{name: Signature(_ONE, ("dim",)) for name in ("cumsum", "cumprod", "logcumsumexp")},
        **{name: Signature(_ONE, ("dim",), 2) for name in ("cummax", "cummin")},
    },
    "sort": {
        "sort": Signature(_ONE, ("dim", "descending", "stable"), 2),
        "topk": Signature(_ONE, ("dim", "k", "largest", "sorted"), 2),
    },
    "create": {
        "full": Signature((0, 0), ("value",)),
        "empty": Signature((0, 0)),
        "arange": Signature((0, 0), ("start", "step")),
        "eye": Signature((0, 0)),
        "constant": Signature((0, 0), ("values",)),
        "random": Signature((0, 0), ("distribution", "parameters", "seed", "stream", "drawn")),
    },
    "cast": {"cast": Signature(_ONE)},
}
_SCALARS_OF = ("map", "index")
_DIMENSION = frozenset(("dim", "dim1", "dim2"))
_WHOLE = frozenset(("diagonal", "index", "k", "offset", "size", "start", "step", "stop"))
_LISTS = frozenset(("after", "before", "dims", "padding", "repeats"))


def check_op(
    where: str, kind: str, function: str, attributes: Mapping[str, Any], operands: Sequence[Shape],
    results: Sequence[Shape],
) -> None:  # fmt: skip
    """Raise :class:`GraphError`, naming the field, unless an op's function is listed and what it is given fits it."""
    signatures = FUNCTIONS.get(kind)
    if signatures is None:
        if not results:
            raise GraphError(f"{where}: outputs: an operation has at least one")
        return
    signature = signatures.get(function)
    if signature is None:
        raise GraphError(f"{where}: function: unknown {kind} function {function!r}")
    if len(results) != signature.results:
        raise GraphError(f"{where}: outputs: {function} has {signature.results}, {len(results)} given")
    missing = [name for name in signature.attributes if name not in attributes]
    if missing:
        raise GraphError(f"{where}: attributes: {function} needs {missing[0]!r}")
    _check_arguments(where, kind, function, attributes, len(operands), signature)
    if kind == "create":
        return
    # ``unsqueeze`` counts in the result; a scalar has the one dimension 0 for the functions that take one.
    rank = len(results[0] if function == "unsqueeze" else operands[0])
    for name in signature.attributes:
        _check_attribute(where, name, attributes[name], rank)
    if function == "permute" and len(attributes["dims"]) != rank:
        raise GraphError(f"{where}: attributes: dims {attributes['dims']!r} is no permutation of {rank} dimensions")
    if kind == "map" or function == "expand":
        for position, shape in enumerate(operands):
            if not _broadcasts(shape, results[0]):
                raise GraphError(
                    f"{where}: operands: shape {list(shape)} of operand {position} does not broadcast to "
                    f"{list(results[0])}"
                )


def _check_arguments(
    where: str, kind: str, function: str, attributes: Mapping[str, Any], operands: int, signature: Signature
) -> None:
    scalars = attributes.get("scalars", {}) if kind in _SCALARS_OF else {}
    if not isinstance(scalars, Mapping):
        raise GraphError(f"{where}: attributes: scalars is not a mapping of positions")
    least, most = signature.arguments
    if function in ("index", "index_put"):
        dims = attributes["dims"]
        least = most = 1 + (len(dims) if isinstance(dims, Sequence) else 0) + (function == "index_put")
    given = operands + len(scalars)
    if given < least or (kind != "create" and operands == 0):
        raise GraphError(f"{where}: operands: missing operand: {function} takes {_number(least, most)}, {given} given")
    if most is not None and given > most:
        raise GraphError(f"{where}: operands: {function} takes {_number(least, most)}, {given} given")
    # An absent limit of ``clamp`` leaves its position free.
    positions = {str(i) for i in (range(1, 3) if function == "clamp" else range(given))}
    for position in scalars:
        if position not in positions:
            raise GraphError(f"{where}: attributes: scalars: no argument {position!r} of {function}")


def _number(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def _check_attribute(where: str, name: str, value: Any, rank: int) -> None:
    if name in _WHOLE | _DIMENSION and type(value) is not int:
        raise GraphError(f"{where}: attributes: {name} {value!r} is not an integer")
    if name in _DIMENSION and not 0 <= value < max(rank, 1):
        raise GraphError(f"{where}: attributes: {name} {value} is not a dimension of {rank}")
    if name in _LISTS and (not isinstance(value, Sequence) or any(type(item) is not int for item in value)):
        raise GraphError(f"{where}: attributes: {name} {value!r} is not a list of integers")
    if name == "dims" and (any(not 0 <= dim < max(rank, 1) for dim in value) or len(set(value)) != len(value)):
        raise GraphError(f"{where}: attributes: dims {list(value)} are not distinct dimensions of {rank}")


def _broadcasts(shape: Shape, result: Shape) -> bool:
    lead = len(result) - len(shape)
    return lead >= 0 and all(extent in (1, result[lead + i]) for i, extent in enumerate(shape))


def is_affine(form: Any) -> bool:
    """Whether ``form`` is ``{"terms": [[index, coefficient], ...], "offset": int}``; the numbers aside."""
    if not isinstance(form, Mapping) or set(form) != {"terms", "offset"} or not isinstance(form["terms"], Sequence):
        return False
    return all(isinstance(t, Sequence) and len(t) == 2 and isinstance(t[0], str) for t in form["terms"])
