"""Verdicts from the emulated card: as an artifact of a release, and the header of a recorded set of them."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from solbench.model.emulation import Count, Emulation
from solbench.model.record import Descriptor, Value
from solbench.model.trace import MAX_LOG_CHARS, Correctness, Digest, Status, require_consistent

SCHEMA: Final = "solbench.verdict.v1"
SET_SCHEMA: Final = "solbench.verdict-set.v1"


class EmulatedBy(Value):
    """What decides a verdict beside the candidate and the draws. ``emulator``: digest of its code; ``tools``: versions
    of what it runs on and of the compilers; ``instructions``: limit of one call, in wave-instructions."""

    emulator: Digest
    tools: dict[str, str]
    instructions: Count


class VerdictSetHeader(EmulatedBy):
    """First line of a recorded set, about every record below it."""

    schema_: Literal["solbench.verdict-set.v1"] = Field(SET_SCHEMA, alias="schema")
    target: str


class Verdict(Value):
    """One candidate on one workload and target: right or wrong, by functional emulation. There is no place for a time.

    ``toolchain``: of the set that it was recorded in. ``log``: what was found, and what the candidate wrote; empty for
    a pass. ``emulation``: null where nothing was run.
    """

    schema_: Literal["solbench.verdict.v1"] = Field(SCHEMA, alias="schema")
    problem: str
    workload: str
    solution: str
    target: str
    instance: Descriptor
    candidate: Descriptor
    toolchain: EmulatedBy
    status: Status
    reason: str | None
    log: str = Field(max_length=MAX_LOG_CHARS)
    correctness: Correctness | None
    emulation: Emulation | None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require_consistent(self.status, self.reason, self.correctness)
        passed = self.status is Status.PASSED
        if passed and (self.emulation is None or all(one.ended is not None for one in self.emulation.instances)):
            raise ValueError("emulation: PASSED needs sizes at which every call ended")
        if passed and self.log:
            raise ValueError("log: not beside PASSED")
        return self
