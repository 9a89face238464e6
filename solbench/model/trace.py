"""What one evaluation observed, and the measurement set that holds many of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer, model_validator

from solbench.model.emulation import Emulation
from solbench.model.record import DIGEST, NAME, Value

SCHEMA: Final = "solbench.trace.v1"
SET_SCHEMA: Final = "solbench.measurement-set.v1"
MAX_LOG_CHARS = 20_000

Digest = Annotated[str, StringConstraints(pattern=DIGEST)]
Method = Literal["cpu_clock", "cuda_event", "hip_event"]
Seconds = Annotated[float, Field(gt=-1e9, lt=1e9)]


class Status(StrEnum):
    """Verdict of one evaluation. Only PASSED is a pass."""

    PASSED = "PASSED"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    TIMEOUT = "TIMEOUT"
    REWARD_HACK = "REWARD_HACK"
    INVALID_REFERENCE = "INVALID_REFERENCE"
    UNSUPPORTED = "UNSUPPORTED"


class Extended(Value):
    """A record with fields that its earlier records lack: these are written only where they hold something, so that a
    record of then keeps its bytes, and its digest."""

    added: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None or name not in self.added}


class CheckResult(Value):
    """Outcome of one output's check over all rounds; errors are null where they have no meaning."""

    output: str
    type: str
    passed: bool
    compared: int = Field(ge=0)
    mismatched: int = Field(ge=0)
    max_absolute_error: float | None = None
    max_relative_error: float | None = None
    has_nan: bool = False
    has_inf: bool = False


class Correctness(Value):
    """``rounds``: fresh draws checked, stress rounds and every timed sample included."""

    rounds: int = Field(ge=1)
    checks: tuple[CheckResult, ...]


def require_consistent(status: Status, reason: str | None, correctness: Correctness | None) -> None:
    """ValueError where a verdict contradicts its checks, or does not say why it is no pass."""
    if status is Status.PASSED and correctness is None:
        raise ValueError("correctness: PASSED needs the checks that passed")
    if status is Status.PASSED and correctness and not all(check.passed for check in correctness.checks):
        raise ValueError("correctness: PASSED beside a failed check")
    if status not in (Status.PASSED, Status.INCORRECT_NUMERICAL) and correctness is not None:
        raise ValueError(f"correctness: not beside {status}")
    if status is not Status.PASSED and not reason:
        raise ValueError("reason: says why it did not pass")


class Observation(Value):
    """One look at the device; null is what it does not tell. ``cpu_hz``: mean over the processors that we may use.

    ``throttle``: what holds the clocks down, by name. ``level``: the performance level in force.
    """

    cpu_hz: float | None = None
    graphics_hz: float | None = None
    memory_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] | None = None
    level: str | None = None


class Observed(Value):
    """The device before the first and after the last sample of a set."""

    before: Observation
    after: Observation


class Batch(Value):
    """The third witness: the orchestrator's clock around ``calls`` back-to-back calls, each on values of its own.

    ``floor_s``: the same of an empty candidate. A batch agrees with the samples when its clock is at most ``floor_s``
    plus ``calls`` times their median event plus ``limit_s``; a null limit: the baseline's, which is not judged.
    """

    calls: int = Field(ge=2)
    clock_s: tuple[Seconds, ...] = Field(min_length=1)
    floor_s: Seconds
    limit_s: Seconds | None = None


class SampleSet(Extended):
    """Raw samples of one process: its own word (``event_s``) and the orchestrator's clock (``clock_s``), pairwise."""

    added: ClassVar = ("batch", "observed")

    process: int = Field(ge=0)
    warmups: int = Field(ge=0)
    event_s: tuple[Seconds, ...]
    clock_s: tuple[Seconds, ...]
    batch: Batch | None = None
    observed: Observed | None = None

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if len(self.event_s) != len(self.clock_s):
            raise ValueError("event_s and clock_s differ in length")
        return self


class Timing(Value):
    """Interleaved samples of candidate and baseline: the n-th of both come from one round, moments apart, on the same
    values. Cold cache is the declared state.
    """

    method: Method
    cache_state: Literal["cold"] = "cold"
    flush_bytes: int = Field(ge=0)
    stop_reason: str
    candidate: tuple[SampleSet, ...]
    baseline: tuple[SampleSet, ...]

    @model_validator(mode="after")
    def _paired(self) -> Self:
        shapes = [
            [(samples.process, len(samples.event_s)) for samples in side] for side in (self.candidate, self.baseline)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError("candidate and baseline are not paired: they differ in processes or sample counts")
        return self


class Trace(Value):
    """One (solution, workload, target). Timing exists only beside PASSED: no time without a verdict.

    ``card``: UUID of the card that it was taken on, which the header of its measurement set describes. ``emulation``:
    how the verdict came about on the emulated card, which gives no times.
    """

    schema_: Literal["solbench.trace.v1"] = Field(SCHEMA, alias="schema")
    definition: str
    workload: str
    workload_digest: Digest
    solution: Annotated[str, StringConstraints(pattern=NAME)]
    solution_digest: Digest
    target: str
    status: Status
    reason: str | None = None
    labels: tuple[str, ...] = ()
    log: str = Field("", max_length=MAX_LOG_CHARS)
    correctness: Correctness | None = None
    timing: Timing | None = None
    card: str | None = Field(None, min_length=1)
    emulation: Emulation | None = None

    def as_dict(self) -> dict[str, Any]:
        """Like every record's; a trace of a target without cards does not speak of one, nor others of emulation."""
        value = super().as_dict()
        unsaid = {name for name in ("card", "emulation") if value[name] is None}
        return {name: value[name] for name in value if name not in unsaid}

    @model_validator(mode="after")
    def _presence(self) -> Self:
        require_consistent(self.status, self.reason, self.correctness)
        if self.status is not Status.PASSED and self.timing is not None:
            raise ValueError("timing: a time stands only beside PASSED")
        if self.emulation is not None and self.timing is not None:
            raise ValueError("timing: an emulated verdict has no time")
        return self


class Omission(Value):
    """A workload that was not attempted for a solution, and why. Not attempted is not a pass."""

    definition: str
    workload: str
    workload_digest: Digest
    solution: str
    reason: str = Field(min_length=1)


class Protocol(Extended):
    """How a measurement set was taken. Numbers of different protocols are never compared.

    ``samples``: of a process; with ``precision`` the least count, after which sampling goes on until the interval of
    both medians lies within this share of them, or ``max_samples`` are taken; null: exactly ``samples``.
    ``preamble_s``: for how long the device is kept busy before the first sample of a process. ``batches``: whether
    calls are also timed in batches.
    """

    added: ClassVar = ("max_samples", "precision", "preamble_s", "batches")

    name: Literal["quick", "full", "custom"]
    processes: int = Field(ge=1)
    samples: int = Field(ge=1)
    max_call_s: float = Field(gt=0)
    isolation: tuple[str, ...]
    max_samples: int | None = Field(None, ge=1)
    precision: float | None = Field(None, gt=0, lt=1)
    preamble_s: float | None = Field(None, gt=0)
    batches: bool | None = None

    @model_validator(mode="after")
    def _adaptive(self) -> Self:
        if (self.max_samples is None) != (self.precision is None):
            raise ValueError("max_samples and precision: both or none")
        if self.max_samples is not None and self.max_samples < self.samples:
            raise ValueError("max_samples: below the least count, samples")
        return self


class Control(Value):
    """A call of known cost, sampled before a set: medians (s) by both witnesses, and what the event had to lie in.

    The clock may be ``slack_s`` longer. ``high_s`` null: no limit is known.
    """

    name: str
    low_s: float = Field(ge=0)
    high_s: float | None
    slack_s: float = Field(ge=0)
    event_s: Seconds | None
    clock_s: Seconds | None
    ok: bool


class SetHeader(Extended):
    """First line of a measurement set: environment and device of everything below it.

    ``device`` is what all ``cards`` have in common; each of them adds its ``uuid``, place, floors and controls. No
    cards: a target without, such as a cpu. ``floor_s``: time of an empty launch, the lowest of the cards'.
    ``controls``: what was sampled before the set; null: no control was run, or each card has its own.
    """

    added: ClassVar = ("controls",)

    schema_: Literal["solbench.measurement-set.v1"] = Field(SET_SCHEMA, alias="schema")
    target: str
    protocol: Protocol
    harness: Digest
    environment: dict[str, str]
    device: dict[str, Any]
    floor_s: float = Field(ge=0)
    clocks: Literal["locked", "unlocked"]
    hardware: dict[str, Any] | None = None
    cards: tuple[dict[str, Any], ...] = ()
    controls: tuple[Control, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Like every record's; without cards it does not speak of them."""
        value = super().as_dict()
        return value if self.cards else {name: value[name] for name in value if name != "cards"}

    @model_validator(mode="after")
    def _distinct_cards(self) -> Self:
        uuids = [card.get("uuid") for card in self.cards]
        if not all(isinstance(uuid, str) and uuid for uuid in uuids) or len(set(uuids)) < len(uuids):
            raise ValueError("cards: each needs a uuid of its own")
        return self
