"""What each kind of artifact must be: its contract, closed and versioned, checked without PyTorch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from solar.errors import HardwareError, SolarError
from solbench import canonical
from solbench.errors import InputError
from solbench.model.code import Code, Kernel
from solbench.model.configuration import Configuration
from solbench.model.definition import Definition
from solbench.model.readiness import Readiness
from solbench.model.record import Descriptor, Value
from solbench.model.release import Release, Section
from solbench.model.score import Entry, Score
from solbench.model.solution import Solution
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.model.verdict import Verdict
from solbench.model.workload import Workload
from solbench.store import RAW_KINDS, without_kind

if TYPE_CHECKING:
    from solar.hardware import Machine

_VERSIONED = re.compile(r"(.+\.v)[0-9]+\Z")


class MemoryTerm(Value):
    """What a score reads of a bound's memory term."""

    model_config = ConfigDict(extra="allow")
    live_bytes: float = Field(ge=0)
    bandwidth_bytes_per_s: float = Field(gt=0)


class BoundResult(Value):
    """What a score reads of a bound's result; the rest is compared with a recomputation."""

    model_config = ConfigDict(extra="allow")
    schema_: Literal["solar.bound.v1"] = Field("solar.bound.v1", alias="schema")
    t_sol_s: float = Field(ge=0)
    memory: MemoryTerm


class Bound(Value):
    """T_SOL of one workload on one target with everything that it was derived from, or the reason why there is none."""

    schema_: Literal["solbench.bound.v1"] = Field("solbench.bound.v1", alias="schema")
    problem: str
    workload: str
    target: str
    instance: Descriptor
    graph: Descriptor | None
    hardware: Descriptor
    attestation: Descriptor | None
    rejected_formats: tuple[str, ...]
    result: BoundResult | None
    reason: str | None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.result is None) == (self.reason is None):
            raise ValueError("exactly one of result and reason is null")
        if self.result is not None and self.graph is None:
            raise ValueError("graph: a result needs the graph that it was derived from")
        return self


class Instance(Value):
    """A workload with its axes resolved and the definition that it belongs to."""

    schema_: Literal["solbench.workload-instance.v1"] = Field("solbench.workload-instance.v1", alias="schema")
    problem: str
    definition: Descriptor
    workload: Workload
    axes: dict[str, int]


class OmissionRecord(Omission):
    """An omission as an artifact."""

    schema_: Literal["solbench.omission.v1"] = Field("solbench.omission.v1", alias="schema")


class Subject(Value):
    """What a statement is about."""

    name: str
    digest: dict[str, str]


class Replay(Value):
    """What a verifier reads of a replay's result."""

    model_config = ConfigDict(extra="allow")
    verdict: Literal["passed"]
    seeds: tuple[int, ...] = Field(min_length=1)


class Attestation(Value):
    """Statement that an IR computed what its reference computes, on seeded inputs; only a replay can repeat that."""

    schema_: Literal["solar.attestation.v1"] = Field("solar.attestation.v1", alias="schema")
    type_: Literal["https://in-toto.io/Statement/v1"] = Field("https://in-toto.io/Statement/v1", alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: str = Field(alias="predicateType")
    predicate: Replay


class NoGraph(Value):
    """Why a workload has no graph."""

    schema_: Literal["solbench.no-graph.v1"] = Field("solbench.no-graph.v1", alias="schema")
    reason: str = Field(min_length=1)


MODELS: Final[Mapping[str, type[Value]]] = {
    "definition": Definition,
    "solution": Solution,
    "workload": Instance,
    "configuration": Configuration,
    "attestation": Attestation,
    "no-graph": NoGraph,
    "bound": Bound,
    "measurement-set": SetHeader,
    "trace": Trace,
    "omission": OmissionRecord,
    "score": Score,
    "entry": Entry,
    "code": Code,
    "kernel": Kernel,
    "verdict": Verdict,
    "readiness": Readiness,
    "section": Section,
    "release": Release,
}
SCHEMAS: Final[Mapping[str, str]] = {
    **{kind: model.model_fields["schema_"].default for kind, model in MODELS.items()},
    "operator-graph": "solar.operator-graph.v1",
    "einsum-graph": "solar.einsum-graph.v1",
    "hardware": "solar.hardware.v1",
}


def violation(kind: str, value: Any, data: bytes, again: bytes | None = None) -> tuple[str, object, object] | None:
    """(code, expected, found) for a parsed artifact that breaks the contract of its kind, or None.

    ``data``: the canonical bytes that ``value`` was parsed from; ``again``: :func:`solbench.canonical.rewritten` of it.
    """
    if kind in RAW_KINDS:
        return None
    if not isinstance(value, dict) or value.get("kind") != kind:
        return "media-type", kind, value.get("kind") if isinstance(value, dict) else "no artifact"
    expected = SCHEMAS.get(kind)
    if expected is None:
        return "media-type", "a known kind", kind
    schema = value.get("schema")
    if schema != expected:
        family = _VERSIONED.match(expected)
        other = isinstance(schema, str) and family is not None and re.fullmatch(re.escape(family[1]) + "[0-9]+", schema)
        return "version" if other else "media-type", expected, schema
    if kind in MODELS and _strictly_again(kind, value, data):
        return None
    body = without_kind(value)
    try:
        written = _READERS[kind](body) if kind in _READERS else MODELS[kind].load(body, kind).as_dict()
    except (InputError, SolarError) as error:
        return "schema", "the contract of its kind", error
    written["kind"] = kind
    # What is written the same way settles most artifacts at once; the others have whole numbers where the contract has
    # floats, and for them plain equality will do where there is no truth value that could pass for a number.
    try:
        ours = canonical.rewritten(written)
    except TypeError:  # not a value that JSON has
        ours = b""
    if ours != again:
        truths = any(word in text for word in (b"true", b"false") for text in (data, ours))
        if not (same(written, value) if truths else written == value):
            return "schema", "every field as its contract writes it", "defaults left out, or values of other types"
    return None


def _strictly_again(kind: str, value: dict[str, Any], data: bytes) -> bool:
    """Whether the contract, read from the bytes and converting nothing, writes the same value again.

    That settles nearly all artifacts. Read strictly, a truth value stays one and nothing else becomes one, so equality
    means the same canonical form. Where it says no, the slow way tells why, or finds nothing.
    """
    # Where this hits a reference instead, the contract says no.
    body = data.replace(b'"kind":"%s",' % kind.encode(), b"", 1)
    try:
        written = MODELS[kind].model_validate_json(body, strict=True).as_dict()
    except ValidationError:
        return False
    written["kind"] = kind
    return bool(written == value)


def _einsum_graph(body: dict[str, Any]) -> dict[str, Any]:
    from solar.einsum import from_dict, to_dict

    return to_dict(from_dict(body))


def _operator_graph(body: dict[str, Any]) -> dict[str, Any]:
    from solar.graph import from_dict, to_dict

    return to_dict(from_dict(body))


def same(one: Any, other: Any) -> bool:
    """Whether two plain JSON values have the same canonical form: equal, and a truth value only equal to itself."""
    if type(one) is type(other) and not isinstance(one, (dict, list, tuple)):
        return bool(one == other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, (list, tuple)):
        return (
            isinstance(other, (list, tuple))
            and len(one) == len(other)
            and all(same(a, b) for a, b in zip(one, other, strict=True))
        )
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def machine(artifact: Mapping[str, Any]) -> Machine:
    """The machine model of a ``hardware`` artifact; :class:`HardwareError` where it is none."""
    from solar.hardware import Machine

    return Machine.from_dict(without_kind(artifact))


def _hardware(body: dict[str, Any]) -> dict[str, Any]:
    from solar.hardware import lint

    found = machine(body)
    for problem in lint(found):
        raise HardwareError(problem)
    return dict(found.to_dict())


_READERS: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "einsum-graph": _einsum_graph,
    "hardware": _hardware,
    "operator-graph": _operator_graph,
}
