"""The root object: everything derived and observed, under one hash."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from solbench.model.record import NAME, Descriptor, Value

SCHEMA: Final = "solbench.release.v1"
SECTION_SCHEMA: Final = "solbench.section.v1"


class TargetState(Value):
    """What a release holds for one target, and what it does not; ``device`` names the card that was measured."""

    target: str
    bounds: int
    timed: int
    workloads: int
    state: Literal["timed", "not timed"]
    device: str | None = None
    note: str


class Section(Value):
    """The index of one stage as an object: logical name -> reference."""

    schema_: Literal["solbench.section.v1"] = Field(SECTION_SCHEMA, alias="schema")
    stage: str
    entries: dict[str, Descriptor]


class Release(Value):
    """Identity of a release: the digest of this object. Who built it, when and with what stands beside it, not here."""

    schema_: Literal["solbench.release.v1"] = Field(SCHEMA, alias="schema")
    name: Annotated[str, StringConstraints(pattern=NAME)]
    corpora: tuple[str, ...]
    problems: int
    workloads: int
    targets: tuple[TargetState, ...]
    sections: dict[str, Descriptor]
