"""One concrete instance of a problem: sizes, how each input is drawn, how each output is checked."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StringConstraints, model_validator

from solbench.errors import InputError
from solbench.model.definition import Definition, Dtype, Identifier, resolve_shape
from solbench.model.expression import Number, evaluate, evaluate_int
from solbench.model.record import Value

SCHEMA: Final = "solbench.workload.v1"

Expression = StrictInt | StrictFloat | str
Scalar = StrictBool | StrictInt | StrictFloat


class Normal(Value):
    """Gaussian in float32, then cast."""

    type: Literal["normal"]
    mean: Expression = 0.0
    std: Expression = 1.0


class Uniform(Value):
    """Uniform in [low, high) in float32, then cast."""

    type: Literal["uniform"]
    low: Expression = 0.0
    high: Expression = 1.0


class Integer(Value):
    """Integers in [low, high)."""

    type: Literal["integer"]
    low: Expression = 0
    high: Expression


class Bernoulli(Value):
    """1 with the given probability, else 0."""

    type: Literal["bernoulli"]
    probability: Expression = 0.5


class Constant(Value):
    """One value everywhere; also how a Python scalar gets its value."""

    type: Literal["constant"]
    value: Scalar


class Simplex(Value):
    """softmax(normal / temperature) along ``axis``: non-negative, sums to 1.

    ``zero_first``: index 0 along the axis becomes 0 and the rest is renormalised.
    """

    type: Literal["simplex"]
    axis: StrictInt = -1
    temperature: Expression = 1.0
    zero_first: bool = False


class Offsets(Value):
    """``count`` sorted integers from ``first`` to ``last``, the inner ones drawn (distinct if strictly increasing)."""

    type: Literal["offsets"]
    first: Expression = 0
    last: Expression
    count: Expression
    strictly_increasing: bool = True


class Values(Value):
    """The very numbers, row-major: an input that decides work is frozen this way."""

    type: Literal["values"]
    values: tuple[Scalar, ...]


class PermutedRows(Value):
    """Each row a permutation of ``low + (high-low) * i / n`` (n = last extent), times U(scale_low, scale_high)."""

    type: Literal["permuted_rows"]
    low: Expression = -1.0
    high: Expression = 1.0
    scale_low: Expression = 1.0
    scale_high: Expression = 1.0


class PowerRows(Value):
    """N(0,1) times 2^k, one integer k in [low, high] a block of ``block`` values (null: a row).

    With more than two blocks the first one's largest magnitude is exactly ``peak_first`` * 2^k, unless that is null.
    ``zero_last``: with more than one block the last one is zero.
    """

    type: Literal["power_rows"]
    low: StrictInt
    high: StrictInt
    block: StrictInt | None = Field(None, gt=0)
    zero_last: bool = False
    peak_first: float | None = Field(None, gt=0)


class RotaryAngles(Value):
    """angle[p, ..., j] = p * base^(-j / n), n = last extent, in float32, then cast."""

    type: Literal["rotary_angles"]
    base: float = Field(10000.0, gt=1)


class LowerTriangular(Value):
    """1 where column <= row over the last two axes, else 0."""

    type: Literal["lower_triangular"]


class Custom(Value):
    """Comes from the Definition's ``custom_inputs_entrypoint``."""

    type: Literal["custom"]


class Safetensors(Value):
    """One tensor of a safetensors file beside the problem."""

    type: Literal["safetensors"]
    path: str
    tensor_key: str


class Random(Value):
    """SOL-ExecBench's unspecified draw. Here: N(0,1) for floats, {0,1} for bool, [0,2) for other integers."""

    type: Literal["random"]


class ScalarInput(Value):
    """SOL-ExecBench's spelling of a constant Python scalar."""

    type: Literal["scalar"]
    value: Scalar


Generator = Annotated[
    Normal | Uniform | Integer | Bernoulli | Constant | Simplex | Offsets | Values | PermutedRows | PowerRows
    | RotaryAngles | LowerTriangular | Custom | Safetensors | Random | ScalarInput,
    Field(discriminator="type"),
]  # fmt: skip


class NumericCheck(Value):
    """elementwise: |o-r| <= atol + rtol*|r|; normalized_max: max|o-r| <= atol + rtol*max|r|. NaN/inf compared first."""

    type: Literal["numeric"]
    output: str
    mode: Literal["elementwise", "normalized_max"] = "elementwise"
    atol: Expression
    rtol: Expression
    required_matched_ratio: float = Field(1.0, gt=0, le=1)
    max_error_cap: float | None = Field(None, gt=0)
    allow_negative_inf: bool = False


class ExactCheck(Value):
    """Equal values (+0 equals -0), element by element."""

    type: Literal["exact"]
    output: str


class CodeDistanceCheck(Value):
    """Distance of quantised codes: of their values, or of their raw bits as unsigned integers."""

    type: Literal["code_distance"]
    output: str
    mode: Literal["value", "raw_bits"]
    max_distance: StrictInt = Field(ge=0)
    min_identical_fraction: float = Field(0.0, ge=0, le=1)


class TopkRoutingCheck(Value):
    """Selected ids compared as sets with ties tolerated, weights by id. Covers two outputs."""

    type: Literal["topk_routing"]
    ids_output: str
    weights_output: str
    gating_input: str
    bias_input: str | None = None
    scale_input: str | None = None
    topk: Expression
    tie_atol: Expression
    weight_atol: Expression


class SigmoidRoutingCheck(Value):
    """As ``topk_routing``, of scores sigmoid(logits) + bias, where the logits are an output with a check of its own.

    The scores are those of the reference's logits; weights are ``scale`` times the sigmoids over their sum.
    """

    type: Literal["sigmoid_routing"]
    ids_output: str
    weights_output: str
    logits_output: str
    bias_input: str | None = None
    topk: Expression
    scale: float = Field(1.0, gt=0)
    tie_atol: Expression
    weight_atol: Expression


RoutingCheck = TopkRoutingCheck | SigmoidRoutingCheck
Check = Annotated[NumericCheck | ExactCheck | CodeDistanceCheck | RoutingCheck, Field(discriminator="type")]


def checked_outputs(check: Check) -> tuple[str, ...]:
    """Names of the outputs that a check covers."""
    if isinstance(check, RoutingCheck):
        return (check.weights_output, check.ids_output)
    return (check.output,)


class StressRound(Value):
    """An extra correctness round: the named inputs are drawn differently; never timed."""

    label: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    inputs: dict[Identifier, Generator] = Field(min_length=1)


class Workload(Value):
    """``inputs`` names a generator for every input; ``checks`` cover every output exactly once.

    ``rejected_formats``: dtypes such that rounding the operands of the contractions to them breaks a check (evidence:
    ``corpus validate``). The bound prices a contraction at the fastest format that is not rejected; in doubt a format
    is admitted, so an empty tuple is the safe default.
    """

    schema_: Literal["solbench.workload.v1"] = Field(SCHEMA, alias="schema")
    uuid: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    axes: dict[Identifier, StrictInt]
    inputs: dict[Identifier, Generator]
    checks: tuple[Check, ...] = Field(min_length=1)
    stress_rounds: tuple[StressRound, ...] = ()
    rejected_formats: tuple[Dtype, ...] = ()

    @model_validator(mode="after")
    def _covers_each_output_once(self) -> Self:
        seen: set[str] = set()
        for check in self.checks:
            for output in checked_outputs(check):
                if output in seen:
                    raise ValueError(f"checks: output {output!r} is checked twice")
                seen.add(output)
        return self

    def validate_against(self, definition: Definition, where: str) -> dict[str, int]:
        """Check every cross rule with the Definition; returns the resolved axes."""
        axes = definition.resolve_axes(self.axes, where)
        for name in definition.inputs:
            if name not in self.inputs:
                raise InputError(f"{where}: inputs.{name}", "has no generator")
        for label, group in [
            ("inputs", self.inputs),
            *[(f"stress_rounds.{r.label}", r.inputs) for r in self.stress_rounds],
        ]:
            for name, generator in group.items():
                self._check_generator(definition, name, generator, axes, f"{where}: {label}.{name}")
        covered = [output for check in self.checks for output in checked_outputs(check)]
        for output in covered:
            if output not in definition.outputs:
                raise InputError(f"{where}: checks", f"unknown output {output!r}")
        for output in definition.outputs:
            if output not in covered:
                raise InputError(f"{where}: checks", f"output {output!r} has no check")
        for check in self.checks:
            self._check_check(definition, check, axes, f"{where}: checks.{checked_outputs(check)[0]}")
        return axes

    def _check_generator(
        self, definition: Definition, name: str, generator: Generator, axes: dict[str, int], where: str
    ) -> None:
        spec = definition.inputs.get(name)
        if spec is None:
            raise InputError(where, f"unknown input; {definition.name} has {', '.join(definition.inputs)}")
        if spec.shape is None and not isinstance(generator, (Constant, ScalarInput)):
            raise InputError(where, "a Python scalar takes a constant")
        if isinstance(generator, Custom) and definition.custom_inputs_entrypoint is None:
            raise InputError(where, "custom needs a custom_inputs_entrypoint in the Definition")
        names: dict[str, Number] = dict(axes)
        for field in ("mean", "std", "low", "high", "probability", "temperature", "first", "last", "count"):
            value = getattr(generator, field, None)
            if value is not None:
                evaluate(value, names, f"{where}.{field}")
        for field in ("std", "temperature"):
            value = getattr(generator, field, None)
            if value is not None and evaluate(value, names, f"{where}.{field}") <= 0:
                raise InputError(f"{where}.{field}", "must be positive")
        if isinstance(generator, Integer) and (
            evaluate_int(generator.low, names, f"{where}.low") >= evaluate_int(generator.high, names, f"{where}.high")
        ):
            raise InputError(f"{where}.high", "must be above low")
        if isinstance(generator, Uniform) and (
            evaluate(generator.low, names, f"{where}.low") >= evaluate(generator.high, names, f"{where}.high")
        ):
            raise InputError(f"{where}.high", "must be above low")
        if isinstance(generator, Bernoulli) and not (
            0 <= evaluate(generator.probability, names, f"{where}.probability") <= 1
        ):
            raise InputError(f"{where}.probability", "must lie in [0, 1]")
        if isinstance(generator, Values) and len(generator.values) != math.prod(resolve_shape(spec, axes)):
            raise InputError(f"{where}.values", f"{len(generator.values)} numbers do not fill {list(spec.shape or ())}")

    def _check_check(self, definition: Definition, check: Check, axes: dict[str, int], where: str) -> None:
        names: dict[str, Number] = dict(axes)
        for field in ("atol", "rtol", "topk", "tie_atol", "weight_atol"):
            value = getattr(check, field, None)
            if value is not None and evaluate(value, names, f"{where}.{field}") < 0:
                raise InputError(f"{where}.{field}", "must not be negative")
        if isinstance(check, SigmoidRoutingCheck) and check.logits_output not in definition.outputs:
            raise InputError(f"{where}.logits_output", f"unknown output {check.logits_output!r}")
        if isinstance(check, RoutingCheck):
            for field in ("gating_input", "bias_input", "scale_input"):
                named = getattr(check, field, None)
                if named is not None and named not in definition.inputs:
                    raise InputError(f"{where}.{field}", f"unknown input {named!r}")
