"""What a target has to show before its results are published: a matrix of workloads and solutions."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from solbench.model.record import Descriptor, Value
from solbench.model.trace import Digest

SCHEMA: Final = "solbench.readiness.v1"

Level = Literal["static", "canary", "full"]


class Item(Value):
    """One thing that has to be there, or to run. ``solution`` null: the analysis of the workload itself.

    ``evidence``: the bound, or the record of a candidate's code; null for a run, and where there is none. ``reason``
    says why it is not ``ready``, and only then.
    """

    problem: str
    workload: str
    instance: Digest
    solution: str | None
    candidate: Digest | None
    ready: bool
    reason: str | None = Field(min_length=1)
    evidence: Descriptor | None

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if self.ready != (self.reason is None):
            raise ValueError("reason: null for what is ready, and only for that")
        if (self.solution is None) != (self.candidate is None):
            raise ValueError("candidate: the digest of the solution, where there is one")
        return self

    @property
    def key(self) -> tuple[str, str, str]:
        return self.problem, self.workload, self.solution or ""


class Place(Value):
    """Where a matrix was run: as in the header of a measurement set."""

    harness: Digest
    environment: dict[str, str]
    device: dict[str, Any]
    cards: tuple[dict[str, Any], ...]
    isolation: tuple[str, ...]


class Readiness(Value):
    """``static``: analysis and compile evidence exist. ``canary``: the baseline and every solution for the target ran
    the smallest and the largest workload of each problem, once each. ``full``: they ran all of them.
    """

    schema_: Literal["solbench.readiness.v1"] = Field(SCHEMA, alias="schema")
    target: str
    level: Level
    items: tuple[Item, ...] = Field(min_length=1)
    ready: int
    total: int
    place: Place | None

    @model_validator(mode="after")
    def _counts(self) -> Self:
        keys = [item.key for item in self.items]
        if keys != sorted(set(keys)):
            raise ValueError("items: must be sorted by problem, workload and solution, each once")
        if (self.ready, self.total) != (sum(item.ready for item in self.items), len(self.items)):
            raise ValueError("ready, total: do not count the items")
        if (self.place is None) != (self.level == "static"):
            raise ValueError("place: of what was run, and only of that")
        return self
