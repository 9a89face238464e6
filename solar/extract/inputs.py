"""What a trace is given: meta tensors, known contents and Python scalars; and how it says that it cannot go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from solar.errors import ExtractionError
from solar.graph import Input, Scalar

# What a reference may raise while it runs on meta tensors; anything else is a fault of its own and goes through.
FOREIGN = (
    RuntimeError,
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    NameError,
    ImportError,
)


@dataclass(frozen=True)
class Prepared:
    """Inputs by name: ``tensors`` (meta, row-major), ``contents`` (real, where values are declared), ``scalars``."""

    tensors: Mapping[str, torch.Tensor]
    contents: Mapping[str, torch.Tensor]
    scalars: Mapping[str, Scalar]


def prepare(inputs: Mapping[str, Input], in_place: Sequence[str]) -> Prepared:
    """The inputs of a trace; :class:`ExtractionError` where one is declared in a way that no call could give it."""
    for name in in_place:
        if name not in inputs or inputs[name].shape is None:
            raise ExtractionError(f"in_place: {name!r} is not a tensor input")
    return Prepared(
        {name: _meta(name, spec) for name, spec in inputs.items() if spec.shape is not None},
        {name: _contents(name, spec) for name, spec in inputs.items() if spec.values is not None},
        {name: _scalar(name, spec) for name, spec in inputs.items() if spec.shape is None},
    )


def _meta(name: str, spec: Input) -> torch.Tensor:
    assert spec.shape is not None
    if any(extent < 0 for extent in spec.shape):
        raise ExtractionError(f"inputs.{name}: negative extent in {list(spec.shape)}")
    return torch.empty(spec.shape, dtype=torch_dtype(name, spec.dtype), device="meta")


def _contents(name: str, spec: Input) -> torch.Tensor:
    if spec.shape is None:
        raise ExtractionError(f"inputs.{name}: values belong to a tensor; a Python scalar has a value")
    try:
        return torch.tensor(spec.values, dtype=torch_dtype(name, spec.dtype)).reshape(spec.shape)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ExtractionError(f"inputs.{name}.values: {first_line(error)}") from None


def _scalar(name: str, spec: Input) -> Scalar:
    if spec.value is None:
        raise ExtractionError(f"inputs.{name}: a Python scalar needs its value")
    if spec.dtype == "bool":
        return bool(spec.value)
    return float(spec.value) if spec.dtype.startswith(("float", "bfloat")) else int(spec.value)


def torch_dtype(where: str, name: str) -> torch.dtype:
    """The dtype of that name; :class:`ExtractionError` for one that PyTorch lacks."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ExtractionError(f"{where}: no dtype {name!r}")
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


@contextmanager
def plain_settings() -> Iterator[None]:
    """Whatever the caller set, a trace sees PyTorch's own default dtype and no autocast."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_default_dtype(before)


def refusal(error: BaseException) -> ExtractionError:
    """Why a reference that raised ``error`` on the meta device cannot be recorded."""
    if isinstance(error, ExtractionError):
        return error
    if isinstance(error, NotImplementedError):
        return ExtractionError(f"the reference calls what has no form on the meta device: {first_line(error)}")
    return ExtractionError(
        f"the reference cannot be traced on the meta device: {type(error).__name__}: {first_line(error)}"
    )


def first_line(error: BaseException) -> str:
    """First line of an error's message, cut short; its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
