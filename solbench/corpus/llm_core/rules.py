"""What a corpus of generated workloads consists of: slots, targets, rules, each a closed record read from YAML.

``<corpus>/generation.yaml`` has what all rules share, ``<corpus>/rules/<name>.yaml`` one rule a Definition,
``<corpus>/targets/<name>.yaml`` one target template. None of them holds a Definition; ``load_corpus`` passes them by.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StringConstraints, model_validator

from solbench.corpus.document import read_yaml
from solbench.corpus.llm_core.formula import formula_names
from solbench.errors import InputError
from solbench.model.configuration import Role
from solbench.model.definition import Dtype, Identifier
from solbench.model.record import NAME, Value

Name = Annotated[str, StringConstraints(pattern=NAME)]
FormulaText = StrictInt | str
SIZES = ("smoke", "decode", "prefill", "irregular")


class Slot(Value):
    """One of the nine workloads of every Definition.

    ``sizes`` names the rule's row of axes. ``value`` = max(1, floor(scale * ratio)); ``extent`` = value rounded down to
    a multiple of ``align`` (at least ``align``), or, where ``odd``, max(3, value with its lowest bit set).
    """

    slot: Name
    role: Role
    regime: Literal["latency", "throughput", "irregular", "capacity"]
    sizes: Literal["smoke", "decode", "prefill", "irregular"]
    ratio: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*/[1-9][0-9]*$")]
    align: StrictInt = Field(1, gt=0)
    odd: bool = False

    def names(self, scale: int) -> dict[str, int]:
        """``value`` and ``extent`` at a common scale >= 1."""
        numerator, _, denominator = self.ratio.partition("/")
        value = max(1, scale * int(numerator) // int(denominator))
        extent = max(3, value | 1) if self.odd else max(self.align, value // self.align * self.align)
        return {"value": value, "extent": extent}


class Generation(Value):
    """What all rules of a corpus share. A workload's peak may fill 1/``peak_divisor`` of a capacity class."""

    schema_: Literal["solbench.llm_core_generation.v1"] = Field(alias="schema")
    algorithm: Name
    profiles: tuple[Name, ...]
    classes_gib: tuple[StrictInt, ...] = Field(min_length=1)
    peak_divisor: StrictInt = Field(gt=0)
    largest_scale: StrictInt = Field(gt=0)
    slots: tuple[Slot, ...]

    @model_validator(mode="after")
    def _nine_slots(self) -> Self:
        if len({slot.slot for slot in self.slots}) != len(self.slots) or len(self.slots) != 9:
            raise ValueError("slots: nine slots with names of their own")
        if len({Fraction(slot.ratio) for slot in self.slots}) != 9:
            raise ValueError("slots: every slot has a ratio of its own")
        roles = [slot.role for slot in self.slots]
        if (roles.count("smoke"), roles.count("development"), roles.count("holdout")) != (1, 4, 4):
            raise ValueError("slots: one smoke, four development and four holdout slots")
        if list(self.classes_gib) != sorted(set(self.classes_gib)) or self.classes_gib[0] < 1:
            raise ValueError("classes_gib: positive and ascending")
        return self


class Target(Value):
    """What generated workloads may ask of a target. ``max_interface_bytes`` limits all inputs and outputs together."""

    schema_: Literal["solbench.llm_core_target.v1"] = Field(alias="schema")
    target: Name
    dtypes: tuple[Dtype, ...]
    quantization: tuple[Name, ...]
    capabilities: tuple[Name, ...]
    max_tensor_bytes: StrictInt = Field(gt=0)
    max_interface_bytes: StrictInt | None = Field(None, gt=0)


class Tensor(Value):
    """``shape``: a formula over the axes an entry."""

    shape: tuple[FormulaText, ...]
    dtype: Dtype


class Rule(Value):
    """How one Definition's axes follow from a slot, and what its reference then needs.

    ``axes`` gives every ``var`` axis of the Definition as a formula over ``value`` and ``extent``, one row for each of
    ``SIZES``; ``derived`` the ``expr`` axes, in order, over the axes before. ``limits``: formula over the axes ->
    largest value (a model's context). ``temporary_bytes``: peak of live intermediates of the eager reference beside its
    inputs and outputs, as the largest of several formulas.
    """

    schema_: Literal["solbench.llm_core_rule.v1"] = Field(alias="schema")
    name: Name
    family: Name
    profiles: tuple[Name, ...] = Field(min_length=1)
    source: Name
    targets: tuple[Name, ...] = Field(min_length=1)
    quantization: Name | None = None
    capabilities: tuple[Name, ...] = ()
    axes: dict[str, dict[Identifier, FormulaText]]
    derived: dict[Identifier, FormulaText] = {}
    limits: dict[str, StrictInt] = {}
    inputs: dict[Identifier, Tensor] = Field(min_length=1)
    outputs: dict[Identifier, Tensor] = Field(min_length=1)
    temporary_bytes: tuple[FormulaText, ...] = Field(min_length=1)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor of the interface."""
        return (*self.inputs.values(), *self.outputs.values())

    @model_validator(mode="after")
    def _names(self) -> Self:
        if set(self.axes) != set(SIZES):
            raise ValueError(f"axes: has the rows {', '.join(SIZES)}")
        known = set(self.axes["smoke"])
        for row, formulas in self.axes.items():
            if set(formulas) != known:
                missing = ", ".join(sorted(known ^ set(formulas)))
                raise ValueError(f"axes.{row}: every row binds the same axes; differs in {missing}")
            for axis, text in formulas.items():
                _uses(text, {"value", "extent"}, f"axes.{row}.{axis}")
        for axis, text in self.derived.items():
            _uses(text, known, f"derived.{axis}")
            known = known | {axis}
        for text in self.limits:
            _uses(text, known, "limits")
        for tensor in self.tensors:
            for text in tensor.shape:
                _uses(text, known, "shape")
        for text in self.temporary_bytes:
            _uses(text, known, "temporary_bytes")
        return self


@dataclass(frozen=True)
class Rules:
    """A whole corpus: what its rules share, its rules by name, its target templates by name."""

    generation: Generation
    rules: dict[str, Rule]
    targets: dict[str, Target]

    def target(self, name: str) -> Target:
        """The template ``name``; :class:`InputError` lists the known ones."""
        if name not in self.targets:
            raise InputError(name, f"no such target template; known are {', '.join(self.targets)}")
        return self.targets[name]


def load_rules(folder: Path) -> Rules:
    """Read ``folder`` (``problems/LLM_CORE``); :class:`InputError` names file and field of the first broken rule."""
    path = folder / "generation.yaml"
    generation = Generation.load(read_yaml(path), str(path))
    rules = {}
    for path in sorted((folder / "rules").glob("*.yaml")):
        rule = Rule.load(read_yaml(path), str(path))
        if rule.name != path.stem:
            raise InputError(f"{path}: name", f"must be {path.stem}, as the file is named")
        unknown = sorted(set(rule.profiles) - set(generation.profiles))
        if unknown:
            raise InputError(f"{path}: profiles", f"{unknown[0]!r} is not one of {', '.join(generation.profiles)}")
        rules[rule.name] = rule
    if not rules:
        raise InputError(str(folder / "rules"), "has no rules")
    targets = {}
    for path in sorted((folder / "targets").glob("*.yaml")):
        target = Target.load(read_yaml(path), str(path))
        if target.target != path.stem:
            raise InputError(f"{path}: target", f"must be {path.stem}, as the file is named")
        targets[target.target] = target
    return Rules(generation, rules, targets)


def _uses(text: FormulaText, known: set[str], where: str) -> None:
    try:
        unknown = formula_names(text) - known
    except InputError as error:
        raise ValueError(f"{where}: {error.rule}") from None
    if unknown:
        raise ValueError(f"{where}: unknown name {sorted(unknown)[0]!r}")
