"""What a problem computes: axes, inputs, outputs, and a PyTorch reference. A superset of SOL-ExecBench's Definition."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from solbench.errors import InputError
from solbench.model.expression import Number, evaluate_int, names_in
from solbench.model.record import IDENTIFIER, NAME, Value

SCHEMA: Final = "solbench.definition.v1"

Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]

# Storage bits of one element; of ``float4_e2m1fn_x2`` an element is a pair of values, as PyTorch has it.
DTYPE_BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float4_e2m1": 4, "float4_e2m1fn_x2": 8,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8, "bool": 8,
}  # fmt: skip
Dtype = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1", "float4_e2m1fn_x2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
Role = Literal["activation", "weight", "bias", "scalar", "index", "mask", "table", "target", "state", "gradient"]


class AxisConst(Value):
    """An axis with one value in every workload."""

    type: Literal["const"]
    value: int = Field(ge=0)
    description: str | None = None


class AxisVar(Value):
    """An axis that each workload binds."""

    type: Literal["var"]
    description: str | None = None


class AxisExpr(Value):
    """An axis computed from the axes declared before it."""

    type: Literal["expr"]
    expression: str
    description: str | None = None


Axis = Annotated[AxisConst | AxisVar | AxisExpr, Field(discriminator="type")]


class TensorSpec(Value):
    """``shape``: axis names or digits; ``[]`` is a 0-d tensor, ``null`` a Python scalar. Row-major, contiguous."""

    shape: tuple[str, ...] | None
    dtype: Dtype
    role: Role | None = None
    description: str | None = None

    @field_validator("shape", mode="before")
    @classmethod
    def _digits_as_text(cls, value: object) -> object:
        if isinstance(value, (list, tuple)):
            return tuple(str(x) if isinstance(x, int) and not isinstance(x, bool) else x for x in value)
        return value


class Source(Value):
    """Where the task comes from: facts, no text of theirs."""

    project: str
    revision: str
    task: str
    url: str | None = None


class Order(Value):
    """Declared order of names; canonical JSON sorts the keys of an object, so it has to be written down."""

    axes: tuple[Identifier, ...]
    inputs: tuple[Identifier, ...]
    outputs: tuple[Identifier, ...]


class Definition(Value):
    """One problem: ``run(*inputs) -> outputs`` of the ``reference`` is what a solution must reproduce.

    ``order`` is filled in from the mappings where it is left out, and rules their order where it is given.
    """

    schema_: Literal["solbench.definition.v1"] = Field(SCHEMA, alias="schema")
    name: Annotated[str, StringConstraints(pattern=NAME)]
    op_type: str = Field("other", min_length=1)
    suite: str | None = None
    role: Literal["scored", "sentinel", "apart"] = "scored"
    description: str | None = None
    hf_id: str | None = None
    source: Source | None = None
    axes: dict[Identifier, Axis]
    inputs: dict[Identifier, TensorSpec]
    outputs: dict[Identifier, TensorSpec] = Field(min_length=1)
    order: Order
    in_place: tuple[Identifier, ...] = ()
    persistent: tuple[Identifier, ...] = ()
    destination_passing_style: bool = False
    custom_inputs_entrypoint: Identifier | None = None
    reference: str = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _ordered(cls, value: Any) -> Any:
        groups = ("axes", "inputs", "outputs")
        if not isinstance(value, Mapping) or not all(isinstance(value.get(group), Mapping) for group in groups):
            return value
        order = value.get("order")
        if order is None:
            return {**value, "order": {group: tuple(value[group]) for group in groups}}
        if not isinstance(order, Mapping):
            return value
        ordered = {}
        for group in groups:
            names = order.get(group)
            if not isinstance(names, (list, tuple)) or sorted(map(str, names)) != sorted(map(str, value[group])):
                raise ValueError(f"order.{group}: names every one of {group} once")
            ordered[group] = {str(name): value[group][str(name)] for name in names}
        return {**value, **ordered}

    @model_validator(mode="after")
    def _rules(self) -> Self:
        known: set[str] = set()
        for name, axis in self.axes.items():
            if isinstance(axis, AxisExpr):
                try:
                    unknown = names_in(axis.expression, name) - known
                except InputError as error:
                    raise ValueError(f"axes.{name}: {error.rule}") from None
                if unknown:
                    raise ValueError(f"axes.{name}: unknown axis {sorted(unknown)[0]!r} (declare it before)")
            known.add(name)
        for group, specs in (("inputs", self.inputs), ("outputs", self.outputs)):
            for name, spec in specs.items():
                if name in self.axes:
                    raise ValueError(f"{group}.{name}: is also the name of an axis")
                for entry in spec.shape or ():
                    if not (entry.isascii() and entry.isdigit()) and entry not in self.axes:
                        raise ValueError(f"{group}.{name}.shape: unknown axis {entry!r}")
        for name, spec in self.outputs.items():
            if name in self.inputs:
                raise ValueError(f"outputs.{name}: is also the name of an input")
            if spec.shape is None:
                raise ValueError(f"outputs.{name}.shape: an output is a tensor")
        for group in ("in_place", "persistent"):
            for name in getattr(self, group):
                if name not in self.inputs or self.inputs[name].shape is None:
                    raise ValueError(f"{group}: {name!r} is not a tensor input")
        self._check_reference()
        return self

    def _check_reference(self) -> None:
        try:
            tree = ast.parse(self.reference)
        except SyntaxError as error:
            raise ValueError(f"reference: line {error.lineno}: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"reference: {error}") from None
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "run" not in functions:
            raise ValueError("reference: defines no top-level function 'run'")
        arguments = functions["run"].args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        if names != list(self.inputs) or arguments.vararg or arguments.kwarg:
            raise ValueError(
                f"reference: run({', '.join(names)}) must take the inputs {', '.join(self.inputs)} in order"
            )
        entry = self.custom_inputs_entrypoint
        if entry is not None and entry not in functions:
            raise ValueError(f"custom_inputs_entrypoint: reference defines no top-level function {entry!r}")

    def resolve_axes(self, bound: dict[str, int], where: str) -> dict[str, int]:
        """Value of every axis for a workload's bindings of the ``var`` axes; all values are >= 0."""
        values: dict[str, Number] = {}
        for name, axis in self.axes.items():
            if isinstance(axis, AxisConst):
                values[name] = axis.value
                if name in bound:
                    raise InputError(f"{where}: axes.{name}", "is constant; a workload binds only var axes")
            elif isinstance(axis, AxisVar):
                if name not in bound:
                    raise InputError(f"{where}: axes.{name}", "is not bound")
                values[name] = bound[name]
            else:
                if name in bound:
                    raise InputError(f"{where}: axes.{name}", "is computed; a workload binds only var axes")
                values[name] = evaluate_int(axis.expression, values, f"{where}: axes.{name}")
            if values[name] < 0:
                raise InputError(f"{where}: axes.{name}", f"is {values[name]}; a size is not negative")
        for name in bound:
            if name not in self.axes:
                raise InputError(f"{where}: axes.{name}", f"unknown axis; {self.name} has {', '.join(self.axes)}")
        return {name: int(value) for name, value in values.items()}


def resolve_shape(spec: TensorSpec, axes: dict[str, int]) -> tuple[int, ...]:
    """Extents of a tensor; a Python scalar counts as 0-d."""
    return tuple(int(entry) if entry.isdigit() else axes[entry] for entry in spec.shape or ())


def storage_bytes(spec: TensorSpec, axes: dict[str, int]) -> int:
    """Bytes of a tensor's storage (contiguous); 0 for a Python scalar."""
    if spec.shape is None:
        return 0
    elements = 1
    for extent in resolve_shape(spec, axes):
        elements *= extent
    return (elements * DTYPE_BITS[spec.dtype] + 7) // 8
