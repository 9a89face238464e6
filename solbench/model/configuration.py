"""For which target each workload of a generated corpus is: one record a (corpus, target), with all decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import Field

from solbench.model.record import Value

SCHEMA: Final = "solbench.configuration.v1"

Status = Literal[
    "generated", "profile_not_selected", "target_not_eligible", "unsupported_dtype", "unsupported_quantization",
    "missing_capability", "insufficient_capacity",
]  # fmt: skip
Role = Literal["smoke", "development", "holdout"]


class Slot(Value):
    """One generated workload of a Definition; ``peak_bytes``: inputs, outputs and temporaries of its reference."""

    uuid: str
    slot: str
    role: Role
    regime: str
    peak_bytes: int


class Decision(Value):
    """What became of one Definition: workloads at a common ``scale``, or a ``status`` that says why not."""

    problem: str
    status: Status
    detail: str = ""
    scale: int | None = None
    workloads: tuple[Slot, ...] = ()


class Configuration(Value):
    """The workloads of a corpus for one target and memory class."""

    schema_: Literal["solbench.configuration.v1"] = Field(SCHEMA, alias="schema")
    corpus: str
    algorithm: str
    target: str
    capacity_class_gib: int
    profiles: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def name(self) -> str:
        """Its logical name in the store."""
        return f"configurations/{self.corpus}/{self.target}"


class Selection:
    """Answers which workload (``<problem>/<uuid>``) is for which target, and which of them count in a score.

    A corpus without a configuration is for every target. Smoke workloads are run and checked, not scored.
    """

    def __init__(self, configurations: Iterable[Configuration]) -> None:
        self._slots: dict[str, dict[str, dict[str, str]]] = {}
        for configuration in configurations:
            slots = self._slots.setdefault(configuration.corpus, {}).setdefault(configuration.target, {})
            for decision in configuration.decisions:
                slots |= {f"{decision.problem}/{slot.uuid}": slot.role for slot in decision.workloads}

    def includes(self, workload: str, target: str) -> bool:
        """Whether ``workload`` is for ``target``."""
        slots = self._slots.get(workload.partition("/")[0])
        return slots is None or workload in slots.get(target, {})

    def counts(self, workload: str, target: str) -> bool:
        """Whether the score of ``workload`` on ``target`` enters a mean."""
        slots = self._slots.get(workload.partition("/")[0])
        return slots is None or slots.get(target, {}).get(workload, "smoke") != "smoke"


def load_selection(index: Mapping[str, Any], load: Callable[[str, Any], Mapping[str, Any]]) -> Selection:
    """The selection of a release: ``index`` is that of its stage ``workloads``, ``load`` reads an artifact of it."""
    return Selection(
        Configuration.load({key: value for key, value in load("workloads", entry).items() if key != "kind"}, name)
        for name, entry in sorted(index.items())
        if entry.kind == "configuration"
    )
