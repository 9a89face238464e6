"""Seeded inputs: every tensor of a workload from one integer, reproducible wherever the same PyTorch runs.

Each input has a generator of its own, seeded through BLAKE3 key derivation from (seed, uuid, round, input): knowing one
input says nothing about another, and an input added or overridden leaves the others as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import torch

from solbench import canonical
from solbench.corpus.reference import load_namespace
from solbench.errors import InputError, UnsupportedError
from solbench.model import workload as generators
from solbench.model.definition import Definition, TensorSpec, resolve_shape
from solbench.model.expression import evaluate, evaluate_int
from solbench.model.workload import Generator, StressRound, Workload

Input: TypeAlias = "torch.Tensor | bool | int | float"
Shape = tuple[int, ...]
# Rows of a permutation are sorted this many elements at a time: the keys cost twelve times the result otherwise.
_SORT_ELEMENTS = 2**22


def torch_dtype(name: str) -> torch.dtype:
    """PyTorch's dtype of a declared one; :class:`UnsupportedError` where this PyTorch has none."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise UnsupportedError(f"dtype {name}: this PyTorch has no such dtype")
    return dtype


def draw(
    definition: Definition,
    workload: Workload,
    axes: Mapping[str, int],
    seed: int,
    *,
    stress: StressRound | None = None,
    folder: Path | None = None,
    device: str = "cpu",
) -> dict[str, Input]:
    """All inputs of ``workload`` in declared order: contiguous tensors in their declared dtypes, and scalars.

    ``device``: where they are drawn and lie; the same seed gives other values on another kind of device. ``axes``:
    every resolved axis. ``stress``: the round whose generators replace those of the inputs it names.
    ``folder``: the problem's, where ``safetensors`` inputs lie. ``custom`` inputs run code of the reference, so only
    trusted processes may draw.
    """
    chosen = {**workload.inputs, **(stress.inputs if stress else {})}
    label = stress.label if stress else None
    custom: dict[str, Any] = {}
    if any(isinstance(chosen[name], generators.Custom) for name in definition.inputs):
        custom = custom_inputs(definition, chosen, axes, _key(seed, workload.uuid, label, ""))
    result: dict[str, Input] = {}
    for name, spec in definition.inputs.items():
        where = f"{definition.name}: {workload.uuid}: inputs.{name}"
        generator = chosen[name]
        if isinstance(generator, generators.Custom):
            value = custom.get(name)
        elif isinstance(generator, generators.Safetensors):
            value = _stored_tensor(folder, generator, where)
        elif spec.shape is None:
            result[name] = _scalar(generator, spec, where)
            continue
        else:
            source = torch.Generator(device).manual_seed(_key(seed, workload.uuid, label, name))
            with nullcontext() if device == "cpu" else torch.device(device):
                value = _tensor(generator, spec, resolve_shape(spec, dict(axes)), axes, source, where)
        result[name] = _checked(value, spec, axes, where).to(device)
    return result


def _key(seed: int, uuid: str, label: str | None, name: str) -> int:
    # PyTorch's CPU generator keeps 32 bits of its seed.
    return int(canonical.derived_key("input", [str(seed), uuid, label, name])[:8], 16)


def _scalar(generator: Generator, spec: TensorSpec, where: str) -> bool | int | float:
    if not isinstance(generator, (generators.Constant, generators.ScalarInput)):
        raise InputError(where, "a Python scalar takes a constant")
    if spec.dtype == "bool":
        return bool(generator.value)
    if spec.dtype.startswith(("int", "uint")):
        if generator.value != int(generator.value):
            raise InputError(where, f"{generator.value} is not an integer")
        return int(generator.value)
    return float(generator.value)


def _checked(value: Any, spec: TensorSpec, axes: Mapping[str, int], where: str) -> torch.Tensor:
    shape, dtype = resolve_shape(spec, dict(axes)), torch_dtype(spec.dtype)
    if not isinstance(value, torch.Tensor):
        raise InputError(where, f"is a {type(value).__name__}, not a tensor")
    if tuple(value.shape) != shape or value.dtype != dtype:
        raise InputError(where, f"is {value.dtype} {list(value.shape)}, declared is {spec.dtype} {list(shape)}")
    return value.detach().contiguous()


def _tensor(
    generator: Generator, spec: TensorSpec, shape: Shape, axes: Mapping[str, int], source: torch.Generator, where: str
) -> torch.Tensor:
    dtype = torch_dtype(spec.dtype)
    number: Callable[[str], float] = lambda field: float(  # noqa: E731
        evaluate(getattr(generator, field), axes, f"{where}.{field}")
    )
    whole: Callable[[str], int] = lambda field: evaluate_int(  # noqa: E731
        getattr(generator, field), axes, f"{where}.{field}"
    )
    _require_fit(generator, spec, where)
    match generator:
        case generators.Normal():
            value = torch.empty(shape).normal_(number("mean"), number("std"), generator=source)
        case generators.Uniform():
            value = torch.empty(shape).uniform_(number("low"), number("high"), generator=source)
        case generators.Integer():
            value = torch.randint(whole("low"), whole("high"), shape, generator=source)
        case generators.Bernoulli():
            value = torch.empty(shape).bernoulli_(number("probability"), generator=source)
        case generators.Constant() | generators.ScalarInput():
            return torch.full(shape, generator.value, dtype=dtype)
        case generators.Simplex():
            value = torch.softmax(torch.randn(shape, generator=source) / number("temperature"), generator.axis)
            if generator.zero_first:
                value.narrow(generator.axis, 0, 1).zero_()
                value /= value.sum(generator.axis, keepdim=True)
        case generators.Offsets():
            value = _offsets(
                whole("first"), whole("last"), whole("count"), generator.strictly_increasing, source, where
            )
        case generators.Values():
            if len(generator.values) != math.prod(shape):
                raise InputError(where, f"has {len(generator.values)} values, the shape {list(shape)} needs others")
            return torch.tensor(generator.values, dtype=dtype).reshape(shape)
        case generators.PermutedRows():
            value = _permuted_rows(number, shape, source)
        case generators.PowerRows():
            value = _power_rows(generator, shape, source, where)
        case generators.RotaryAngles():
            value = _rotary_angles(generator.base, shape)
        case generators.LowerTriangular():
            value = torch.ones(shape).tril_()
        case generators.Random():
            value = _unspecified(dtype, shape, source)
        case _:
            raise UnsupportedError(f"{where}: no generator of type {generator.type}")
    return value if value.dtype == dtype else value.to(dtype)


def _require_fit(generator: Generator, spec: TensorSpec, where: str) -> None:
    real = (
        generators.Normal, generators.Uniform, generators.Simplex, generators.PermutedRows, generators.PowerRows,
        generators.RotaryAngles,
    )  # fmt: skip
    if isinstance(generator, real) and not spec.dtype.startswith(("float", "bfloat")):
        raise InputError(where, f"{generator.type} draws real numbers, {spec.dtype} holds none")
    if spec.dtype.startswith("float4") and not isinstance(generator, generators.Random):
        raise UnsupportedError(f"{where}: {spec.dtype} is drawn only as random codes")


def _offsets(first: int, last: int, count: int, distinct: bool, source: torch.Generator, where: str) -> torch.Tensor:
    inner = count - 2
    if inner < 0 or last < first or (distinct and inner > last - first - 1):
        raise InputError(where, f"there are no {count} such offsets from {first} to {last}")
    if distinct:
        cuts = torch.randperm(last - first - 1, generator=source)[:inner] + first + 1
    else:
        cuts = torch.randint(first, last + 1, (inner,), generator=source)
    return torch.cat((torch.tensor([first]), cuts.sort().values, torch.tensor([last])))


def _permuted_rows(number: Callable[[str], float], shape: Shape, source: torch.Generator) -> torch.Tensor:
    rows, length = math.prod(shape[:-1]), shape[-1]
    base = number("low") + (number("high") - number("low")) * torch.arange(length, dtype=torch.float64) / max(length, 1)
    value = torch.empty(rows, length)
    step = max(1, _SORT_ELEMENTS // max(length, 1))
    for start in range(0, rows, step):
        keys = torch.rand(min(step, rows - start), length, generator=source)
        value[start : start + step] = base.float()[keys.argsort(dim=1)]
    scale = torch.empty(rows, 1).uniform_(number("scale_low"), number("scale_high"), generator=source)
    return value.mul_(scale).reshape(shape)


def _power_rows(generator: generators.PowerRows, shape: Shape, source: torch.Generator, where: str) -> torch.Tensor:
    block = generator.block or shape[-1]
    if shape[-1] % block:
        raise InputError(where, f"rows of {shape[-1]} values are not whole blocks of {block}")
    value = torch.randn(math.prod(shape) // block, block, generator=source)
    power = torch.randint(generator.low, generator.high + 1, (len(value), 1), generator=source)
    if generator.peak_first is not None and len(value) > 2:
        value[0] = value[0].clamp(-generator.peak_first, generator.peak_first)
        value[0, 0] = generator.peak_first
    value = torch.ldexp(value, power)
    if generator.zero_last and len(value) > 1:
        value[-1] = 0
    return value.reshape(shape)


def _rotary_angles(base: float, shape: Shape) -> torch.Tensor:
    exponent = torch.arange(shape[-1], dtype=torch.float32) / shape[-1]
    position = torch.arange(shape[0], dtype=torch.float32).reshape(-1, *[1] * (len(shape) - 1))
    return (position * torch.pow(torch.tensor(base), -exponent)).expand(shape).contiguous()


def _unspecified(dtype: torch.dtype, shape: Shape, source: torch.Generator) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=source, dtype=torch.uint8).bool()
    if dtype == getattr(torch, "float4_e2m1fn_x2", None):
        return torch.randint(0, 256, shape, generator=source, dtype=torch.uint8).view(dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=source)
    return torch.randint(0, 2, shape, generator=source)


def custom_inputs(
    definition: Definition, chosen: Mapping[str, Generator], axes: Mapping[str, int], key: int
) -> dict[str, Any]:
    """What the Definition's entry point gives for the seed ``key``, at least the ``custom`` inputs of ``chosen``.

    Runs code of the reference. :class:`InputError` where an input is missing.
    """
    where = f"{definition.name}: {definition.custom_inputs_entrypoint}"
    wanted = {name for name in definition.inputs if isinstance(chosen[name], generators.Custom)}
    known: dict[str, Any] = dict(axes)
    for name, spec in definition.inputs.items():
        if spec.shape is None:
            known[name] = _scalar(chosen[name], spec, f"{where}: {name}")
    function = getattr(load_namespace(definition), str(definition.custom_inputs_entrypoint))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key)
        values = function(known, torch.device("cpu"))
    if not isinstance(values, Mapping) or not wanted <= set(values):
        raise InputError(where, f"must return the custom inputs {', '.join(sorted(wanted))} by name")
    return dict(values)


def _stored_tensor(folder: Path | None, generator: generators.Safetensors, where: str) -> torch.Tensor:
    if folder is None:
        raise InputError(where, "lies in a safetensors file, but no problem folder was named")
    path = folder
    for part in generator.path.split("/"):
        path = path / part
        if part in ("", ".", "..") or path.is_symlink() or path.is_absolute() != folder.is_absolute():
            raise InputError(where, f"{generator.path!r} is not a plain path below the problem's folder")
    from safetensors import SafetensorError, safe_open  # only these problems need it

    try:
        with safe_open(path, framework="pt") as file:
            return file.get_tensor(generator.tensor_key)
    except (OSError, SafetensorError) as error:
        raise InputError(where, f"{generator.path}: {error}") from None
