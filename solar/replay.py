"""Runs an extended-einsum program with public PyTorch calls, and nothing of the reference or of its extraction.

It reads the IR alone: indices, affine maps, attributes. What it computes is therefore what the IR says, and comparing
it with the reference (:mod:`solar.attest`) tests extraction and conversion at once. Meant for small shapes: an affine
operand is gathered element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from solar.einsum import Op, Program, validate
from solar.errors import ReplayError
from solar.opaque import OPAQUE

_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def replay(program: Program, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    """Outputs by declared name. ``inputs``: real tensors by declared name; scalars are part of the program already and
    are ignored. Outputs carry gradients to inputs that ask for them. Raises :class:`ReplayError` for a wrong input, or
    an op that does not do what its tensors say."""
    validate(program)
    environment: dict[str, Tensor] = {}
    for declared, name in program.inputs:
        expected = program.tensors[name]
        tensor = inputs.get(declared)
        if not isinstance(tensor, Tensor):
            raise ReplayError(f"inputs.{declared}: a tensor is needed")
        if tuple(tensor.shape) != expected.shape or tensor.dtype != _dtype(expected.dtype):
            raise ReplayError(
                f"inputs.{declared}: {tensor.dtype} {list(tensor.shape)}, the program has "
                f"{expected.dtype} {list(expected.shape)}"
            )
        environment[name] = tensor.clone()
    last_use = {name: position for position, op in enumerate(program.ops) for name in op.operands}
    kept = {name for _, name in program.outputs}
    with torch.set_grad_enabled(any(tensor.requires_grad for tensor in environment.values())):
        for position, op in enumerate(program.ops):
            operands = [environment[name] for name in op.operands]
            for name, tensor in zip(op.outputs, run_op(program, op, operands), strict=True):
                expected = program.tensors[name]
                if tuple(tensor.shape) != expected.shape or tensor.dtype != _dtype(expected.dtype):
                    raise ReplayError(
                        f"ops.{op.name}: {op.function} gives {tensor.dtype} {list(tensor.shape)}, the program says "
                        f"{expected.dtype} {list(expected.shape)}"
                    )
                environment[name] = tensor
            for name in op.operands:
                if last_use[name] == position and name not in kept:
                    environment.pop(name, None)
    return {declared: environment[name].clone() for declared, name in program.outputs}


def run_op(program: Program, op: Op, operands: list[Tensor]) -> Sequence[Tensor]:
    """Results of one op; :class:`ReplayError` where it is unknown or does not fit its operands."""
    results = [program.tensors[name] for name in op.outputs]
    shape, dtype = results[0].shape, _dtype(results[0].dtype)
    attributes = op.attributes
    try:
        match op.kind:
            case "einsum":
                return [_einsum(op, [_summable(x, dtype) for x in operands]).to(dtype)]
            case "map":
                return [_map(op, operands, dtype).to(dtype)]
            case "reduce":
                return [_reduce(op.function, operands[0], attributes, shape, dtype)]
            case "view":
                return [_VIEWS[op.function](operands[0], attributes, shape, dtype)]
            case "copy":
                return [_COPIES[op.function](operands, attributes)]
            case "index":
                return [_INDEX[op.function](operands, attributes, dtype)]
            case "scan":
                done = getattr(torch, op.function)(operands[0], dim=attributes["dim"])
                return [done] if isinstance(done, Tensor) else list(done)
            case "sort":
                return _sort(op.function, operands[0], attributes)
            case "create" if op.function == "random":
                return [_random(program, op).to(dtype)]
            case "create":
                return [_create(op.function, attributes, shape, dtype)]
            case "cast":
                return [operands[0].to(dtype)]
            case "opaque":
                return OPAQUE[op.function](operands, attributes)
    except KeyError as error:
        raise ReplayError(f"ops.{op.name}: {op.kind} {op.function}: no {error.args[0]!r} known to the replay") from None
    except (RuntimeError, IndexError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ReplayError(f"ops.{op.name}: {op.kind} {op.function}: {reason[0]}") from None
    raise ReplayError(f"ops.{op.name}: kind {op.kind} cannot be replayed")


# Sums of products.


def _einsum(op: Op, operands: list[Tensor]) -> Tensor:
    """Every operand is first read into its plain indices, then summed by ``torch.einsum``."""
    extents: Mapping[str, int] = op.attributes["indices"]
    letters = dict(zip(extents, _LETTERS, strict=False))
    if len(extents) > len(_LETTERS):
        raise ReplayError(f"ops.{op.name}: more than {len(_LETTERS)} indices")
    read = [_gathered(x, dims, extents) for x, dims in zip(operands, op.attributes["operands"], strict=True)]
    left = ",".join("".join(letters[i] for i in indices) for _, indices in read)
    used = {i for _, indices in read for i in indices}
    output = op.attributes["output"]
    right = "".join(letters[i] for i in output if i in used)
    result = torch.einsum(f"{left}->{right}", *(x for x, _ in read))
    for position, index in enumerate(output):
        if index not in used:
            result = result.unsqueeze(position)
    idle = math.prod(extents[i] for i in extents if i not in used and i not in output)
    return (result if idle == 1 else result * idle).expand([extents[i] for i in output])


def _summable(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Where the result is wider, products are formed there; 8-bit floats have no arithmetic of their own."""
    if tensor.dtype.itemsize < dtype.itemsize:
        return tensor.to(dtype)
    return tensor.float() if tensor.dtype in _FLOAT8 else tensor


def _gathered(tensor: Tensor, dims: Sequence[Any], extents: Mapping[str, int]) -> tuple[Tensor, list[str]]:
    """The operand as a function of its indices: positions outside of it read as zero."""
    indices = list(dict.fromkeys(index for form in dims for index, _ in form["terms"]))
    simple = [form["terms"][0][0] for form in dims if len(form["terms"]) == 1]
    if len(set(simple)) == len(dims) and all(
        form["terms"][0][1] == 1 and form["offset"] == 0 and extents[form["terms"][0][0]] == size
        for form, size in zip(dims, tensor.shape, strict=True)
    ):
        return tensor, simple
    uses = [index for form in dims for index in {i: None for i, _ in form["terms"]}]
    if len(set(uses)) == len(uses):
        return _gathered_by_dimension(tensor, dims, extents), indices
    inside = torch.ones((), dtype=torch.bool)
    places: list[Tensor] = []
    for form, size in zip(dims, tensor.shape, strict=True):
        place = _places(form, indices, extents)
        inside = inside & (place >= 0) & (place < size)
        places.append(place.clamp(0, max(size - 1, 0)))
    shape = [extents[index] for index in indices]
    read = tensor[tuple(place.expand(shape) for place in places)] if places else tensor.expand(shape)
    return torch.where(inside.expand(shape), read, torch.zeros((), dtype=tensor.dtype)), indices


def _places(form: Any, indices: Sequence[str], extents: Mapping[str, int]) -> Tensor:
    """Positions that an affine form takes, over all of ``indices``."""
    place = torch.full((1,) * len(indices), form["offset"], dtype=torch.int64)
    for index, coefficient in form["terms"]:
        column = [1] * len(indices)
        column[indices.index(index)] = extents[index]
        place = place + coefficient * torch.arange(extents[index]).reshape(column)
    return place


def _gathered_by_dimension(tensor: Tensor, dims: Sequence[Any], extents: Mapping[str, int]) -> Tensor:
    """As :func:`_gathered`, where no index serves two dimensions: one dimension after the other, from the last."""
    for dim in range(len(dims) - 1, -1, -1):
        own = list(dict.fromkeys(index for index, _ in dims[dim]["terms"]))
        place = _places(dims[dim], own, extents)
        shape, place = [extents[index] for index in own], place.expand([extents[i] for i in own]).reshape(-1)
        size = tensor.shape[dim]
        inside = (place >= 0) & (place < size)
        tensor = tensor.index_select(dim, place.clamp(0, max(size - 1, 0)))
        if not bool(inside.all()):
            column = [-1 if d == dim else 1 for d in range(tensor.dim())]
            tensor = torch.where(inside.reshape(column), tensor, torch.zeros((), dtype=tensor.dtype))
        tensor = tensor.unflatten(dim, shape) if own else tensor.squeeze(dim)
    return tensor


# Elementwise functions.


def _map(op: Op, operands: list[Tensor], dtype: torch.dtype) -> Tensor:
    scalars = op.attributes.get("scalars", {})
    if op.function in ("tril", "triu"):
        return getattr(torch, op.function)(operands[0], diagonal=op.attributes["diagonal"])
    if op.function == "clamp":
        limits = [_number(scalars[p]) if p in scalars else None for p in ("1", "2")]
        return torch.clamp(operands[0], min=limits[0], max=limits[1])
    queue = iter(operands)
    count = len(operands) + len(scalars)
    arguments = [_number(scalars[str(i)]) if str(i) in scalars else next(queue) for i in range(count)]
    if op.function == "where":
        arguments = [arguments[0], *(_as_tensor(a, dtype) for a in arguments[1:])]
    elif op.function in _TENSORS_ONLY or not isinstance(arguments[0], Tensor):
        like = operands[0].dtype
        arguments = [_as_tensor(a, like) for a in arguments]
    return _MAPS[op.function](*arguments)


def _as_tensor(value: Any, dtype: torch.dtype) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=dtype)


_ON_TENSORS_ONLY = (
    """maximum minimum atan2 hypot copysign nextafter heaviside fmax fmin logical_and logical_or logical_xor"""
)
_TENSORS_ONLY = frozenset(_ON_TENSORS_ONLY.split())
_SAME_NAME = """add sub mul floor_divide remainder fmod pow maximum minimum atan2 hypot neg abs sign exp exp2 expm1 log
    log2 log10 log1p sqrt rsqrt reciprocal erf erfc erfinv sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    sigmoid relu floor ceil round trunc frac lgamma digamma eq ne lt le gt ge isnan isinf isfinite isposinf isneginf
    signbit logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
    bitwise_left_shift bitwise_right_shift where copysign nextafter heaviside fmax fmin"""
_MAPS: dict[str, Callable[..., Tensor]] = {name: getattr(torch, name) for name in _SAME_NAME.split()}


def _divide(left: Any, right: Any) -> Tensor:
    whole = isinstance(left, Tensor) and not left.is_floating_point()
    return torch.div(left, right, rounding_mode="trunc") if whole else torch.div(left, right)


_MAPS["div"] = _divide


# Reductions, scans, order.


def _reduce(function: str, value: Tensor, attributes: Any, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    dims, keepdim = list(attributes["dims"]), bool(attributes["keepdim"])
    if function == "fold":
        return _fold(value, attributes, shape)
    if function == "sum":
        return torch.sum(value, dim=dims, keepdim=keepdim, dtype=dtype) if dims else value.to(dtype)
    if function in ("amax", "amin"):
        return getattr(torch, function)(value, dim=dims, keepdim=keepdim)
    if function in ("argmax", "argmin"):
        value = value.byte() if value.dtype == torch.bool else value
        return getattr(torch, function)(value, dim=dims[0], keepdim=keepdim).to(dtype)
    if function in ("any", "all", "prod"):
        for dim in sorted(dims, reverse=True):
            value = getattr(torch, function)(value, dim=dim, keepdim=keepdim)
        return value.to(dtype)
    raise KeyError(function)


def _fold(value: Tensor, attributes: Any, shape: Sequence[int]) -> Tensor:
    """Add columns up where they fall: one slice of the result for each position inside the window."""
    n = attributes["spatial"]
    stride, dilation, padding = attributes["stride"], attributes["dilation"], attributes["padding"]
    inner, kernel = value.shape[-2 * n : -n], value.shape[-n:]
    lead = list(value.shape[: -2 * n])
    span = [(y - 1) * s + (r - 1) * d + 1 for y, r, s, d in zip(inner, kernel, stride, dilation, strict=True)]
    size = [max(a, p + out) for a, p, out in zip(span, padding, shape[-n:], strict=True)]
    total = torch.zeros([*lead, *size], dtype=torch.float32 if value.dtype.itemsize < 4 else value.dtype)
    for flat in range(math.prod(kernel)):
        position, rest = [], flat
        for extent in reversed(kernel):
            position.append(rest % extent)
            rest //= extent
        position.reverse()
        where = tuple(
            slice(r * d, r * d + (y - 1) * s + 1, s)
            for r, d, y, s in zip(position, dilation, inner, stride, strict=True)
        )
        total[(..., *where)] += value[(..., *position)]
    cut = tuple(slice(p, p + out) for p, out in zip(padding, shape[-n:], strict=True))
    return total[(..., *cut)].to(value.dtype)


def _sort(function: str, value: Tensor, attributes: Any) -> list[Tensor]:
    if function == "topk":
        return list(
            torch.topk(
                value,
                attributes["k"],
                dim=attributes["dim"],
                largest=attributes["largest"],
                sorted=attributes["sorted"],
            )
        )
    if function == "sort":
        options = {"dim": attributes["dim"], "descending": attributes["descending"], "stable": attributes["stable"]}
        return list(torch.sort(value, **options))
    raise KeyError(function)


# Views and copies.


def _unfold(value: Tensor, a: Any, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    starts = torch.arange(shape[a["dim"]]) * a["step"]
    inside = torch.arange(a["size"]) * a["dilation"]
    places = (starts[:, None] + inside[None, :]).reshape(-1)
    picked = value.index_select(a["dim"], places)
    picked = picked.unflatten(a["dim"], (len(starts), len(inside)))
    return picked.movedim(a["dim"] + 1, -1)


def _unsqueeze(value: Tensor, a: Any, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    for dim in sorted(a["dims"]):
        value = value.unsqueeze(dim)
    return value


_VIEWS: dict[str, Callable[[Tensor, Any, Sequence[int], torch.dtype], Tensor]] = {
    "permute": lambda x, a, shape, dtype: x.permute(a["dims"]),
    "reshape": lambda x, a, shape, dtype: x.reshape(shape),
    "slice": lambda x, a, shape, dtype: x[(slice(None),) * a["dim"] + (slice(a["start"], a["stop"], a["step"]),)],
    "select": lambda x, a, shape, dtype: x.select(a["dim"], a["index"]),
    "expand": lambda x, a, shape, dtype: x.expand(shape),
    "squeeze": lambda x, a, shape, dtype: x.squeeze(tuple(a["dims"])) if a["dims"] else x,
    "unsqueeze": _unsqueeze,
    "diagonal": lambda x, a, shape, dtype: torch.diagonal(x, a["offset"], a["dim1"], a["dim2"]),
    "unfold": _unfold,
    "bitcast": lambda x, a, shape, dtype: x.contiguous().view(dtype),
    "as_strided": lambda x, a, shape, dtype: x.contiguous().as_strided(shape, a["stride"], a["offset"]),
}


def _pad(operands: list[Tensor], a: Any) -> Tensor:
    value = operands[0]
    shape = [n + low + high for n, low, high in zip(value.shape, a["before"], a["after"], strict=True)]
    framed = torch.full(shape, _number(a["value"]), dtype=value.dtype)
    framed[tuple(slice(low, low + n) for n, low in zip(value.shape, a["before"], strict=True))] = value
    return framed


def _placed(view: str) -> Callable[[list[Tensor], Any], Tensor]:
    """The base with one of its views replaced."""

    def run(operands: list[Tensor], a: Any) -> Tensor:
        base, source = operands[0].clone(memory_format=torch.contiguous_format), operands[1]
        _VIEWS[view](base, a, source.shape, base.dtype).copy_(source)
        return base

    return run


_COPIES: dict[str, Callable[[list[Tensor], Any], Tensor]] = {
    "clone": lambda x, a: x[0].clone(),
    "cat": lambda x, a: torch.cat(x, dim=a["dim"]),
    "pad": _pad,
    "flip": lambda x, a: torch.flip(x[0], a["dims"]),
    "roll": lambda x, a: torch.roll(x[0], a["shifts"], a["dims"]),
    "repeat": lambda x, a: x[0].repeat(a["repeats"]),
    "slice_scatter": _placed("slice"),
    "select_scatter": _placed("select"),
    "diagonal_scatter": _placed("diagonal"),
    "as_strided_scatter": _placed("as_strided"),
}


# Gathers and scatters.


def _index(operands: list[Tensor], a: Any, dtype: torch.dtype) -> Tensor:
    picked: list[Any] = [slice(None)] * operands[0].dim()
    for dim, index in zip(a["dims"], operands[1:], strict=True):
        picked[dim] = index.long()
    return operands[0][tuple(picked)]


def _index_put(operands: list[Tensor], a: Any, dtype: torch.dtype) -> Tensor:
    count = len(a["dims"])
    where: list[Any] = [slice(None)] * operands[0].dim()
    for dim, index in zip(a["dims"], operands[1 : 1 + count], strict=True):
        where[dim] = index.long()
    source = operands[1 + count] if "scalars" not in a else _as_tensor(_number(a["scalars"][str(1 + count)]), dtype)
    result = operands[0].clone()
    if not a["accumulate"]:
        result[tuple(where)] = source
        return result
    positions = torch.arange(result.numel()).reshape(result.shape)[tuple(where)]
    flat = result.reshape(-1)
    flat.index_add_(0, positions.reshape(-1), source.expand(positions.shape).reshape(-1))
    return flat.reshape(result.shape)


def _scatter(operands: list[Tensor], a: Any, dtype: torch.dtype) -> Tensor:
    base, index = operands[0].clone(), operands[1].long()
    source = operands[2] if len(operands) > 2 else torch.full(index.shape, _number(a["scalars"]["2"]), dtype=dtype)
    if a["reduce"] is None:
        return base.scatter(a["dim"], index, source)
    names = {"add": "sum", "mul": "prod", "amax": "amax", "amin": "amin"}
    return base.scatter_reduce(a["dim"], index, source, reduce=names[a["reduce"]], include_self=True)


_INDEX: dict[str, Callable[[list[Tensor], Any, torch.dtype], Tensor]] = {
    "gather": lambda x, a, dtype: x[0].gather(a["dim"], x[1].long()),
    "index_select": lambda x, a, dtype: x[0].index_select(a["dim"], x[1]),
    "embedding": lambda x, a, dtype: x[0][x[1].long()],
    "index": _index,
    "index_put": _index_put,
    "scatter": _scatter,
    "index_add": lambda x, a, dtype: x[0].clone().index_add(a["dim"], x[1], x[2]),
    "searchsorted": lambda x, a, dtype: torch.searchsorted(x[0].contiguous(), x[1].contiguous(), right=a["right"]).to(
        dtype
    ),
}


def _create(function: str, a: Any, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    if function == "full":
        return torch.full(list(shape), _number(a["value"]), dtype=torch.float32 if dtype in _FLOAT8 else dtype).to(
            dtype
        )
    if function == "empty":
        return torch.zeros(list(shape), dtype=dtype)
    if function == "arange":
        start, step = _number(a["start"]), _number(a["step"])
        whole = isinstance(start, int) and isinstance(step, int)
        steps = torch.arange(shape[0], dtype=torch.int64 if whole else torch.float64)
        return (start + step * steps).to(dtype)
    if function == "eye":
        return torch.eye(*shape, dtype=dtype)
    if function == "constant":
        return torch.tensor([_number(v) for v in a["values"]], dtype=dtype).reshape(list(shape))
    raise KeyError(function)


def _random(program: Program, op: Op) -> Tensor:
    """The draws of a stream follow each other: those that come before are drawn again."""
    generator = torch.Generator().manual_seed(_number(op.attributes["seed"]))
    for earlier in program.ops:
        if earlier.function == "random" and earlier.attributes["stream"] == op.attributes["stream"]:
            a = earlier.attributes
            drawn = torch.empty(program.tensors[earlier.outputs[0]].shape, dtype=_dtype(a["drawn"]))
            _DRAWS[a["distribution"]](drawn, generator, *(_number(value) for value in a["parameters"]))
            if earlier.name == op.name:
                return drawn
    raise ReplayError(f"ops.{op.name}: is not part of the program")


_DRAWS: dict[str, Callable[..., Any]] = {
    "uniform": lambda x, g, low, high: x.uniform_(low, high, generator=g),
    "normal": lambda x, g, mean, deviation: x.normal_(mean, deviation, generator=g),
    "integers": lambda x, g, low, high: x.random_(int(low), int(high), generator=g),
    "permutation": lambda x, g: x.copy_(torch.randperm(len(x), generator=g)),
    "bernoulli": lambda x, g, p: x.bernoulli_(p, generator=g),
    "exponential": lambda x, g, rate: x.exponential_(rate, generator=g),
    "geometric": lambda x, g, p: x.geometric_(p, generator=g),
    "cauchy": lambda x, g, median, scale: x.cauchy_(median, scale, generator=g),
    "log_normal": lambda x, g, mean, deviation: x.log_normal_(mean, deviation, generator=g),
}


def _number(value: Any) -> Any:
    """A constant of the IR as a Python number."""
    if isinstance(value, str):
        return int(value) if value.lstrip("-").isdigit() else float(value)
    return value


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ReplayError(f"no dtype {name!r}")
    return dtype
