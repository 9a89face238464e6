"""Workloads of a target and a capacity class: nine a Definition or none, with every decision written down.

Nothing that is written depends on how much memory was free, only on the class; nothing in an id on the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solbench.canonical import derived_key
from solbench.corpus.llm_core.rules import Generation, Rule, Rules, Target
from solbench.corpus.llm_core.scale import envelope, largest_scale, minimum_distinct_scale, slot_axes
from solbench.errors import InputError
from solbench.model.configuration import Role, Status


@dataclass(frozen=True)
class SlotWorkload:
    """One generated workload: its slot, the ``var`` axes, an id, and the peak its reference needs."""

    uuid: str
    slot: str
    role: Role
    regime: str
    axes: dict[str, int]
    peak_bytes: int


@dataclass(frozen=True)
class Decision:
    """What became of one Definition. ``scale`` and nine ``workloads`` where it was generated, else a reason."""

    name: str
    family: str
    status: Status
    detail: str = ""
    scale: int | None = None
    workloads: tuple[SlotWorkload, ...] = ()


@dataclass(frozen=True)
class View:
    """All decisions for one target, capacity class (GiB) and choice of profiles, by name of the Definition."""

    algorithm: str
    target: str
    class_gib: int
    profiles: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def selected(self) -> list[Decision]:
        """Decisions about Definitions of the chosen profiles."""
        return [decision for decision in self.decisions if decision.status != "profile_not_selected"]

    @property
    def generated(self) -> list[Decision]:
        """Decisions that led to workloads."""
        return [decision for decision in self.decisions if decision.status == "generated"]


def generate(rules: Rules, target: str, class_gib: int, profiles: Sequence[str] = ()) -> View:
    """Decide about every Definition of ``rules``; without ``profiles`` all of them are chosen.

    Raises :class:`InputError` for an unknown target template or profile, and where no chosen Definition is generated.
    """
    generation, template = rules.generation, rules.target(target)
    for profile in profiles:
        if profile not in generation.profiles:
            raise InputError(profile, f"no such profile; known are {', '.join(generation.profiles)}")
    chosen = tuple(profile for profile in generation.profiles if profile in profiles or not profiles)
    decisions = tuple(_decide(rule, generation, template, class_gib, chosen) for rule in rules.rules.values())
    view = View(generation.algorithm, target, class_gib, chosen, decisions)
    if not view.generated:
        reasons = ", ".join(sorted({decision.status for decision in view.selected})) or "no Definition has the profile"
        raise InputError(f"{target} with {class_gib} GiB", f"no Definition of {', '.join(chosen)} fits: {reasons}")
    return view


def ineligible(rule: Rule, target: Target) -> tuple[Status, str] | None:
    """Why ``target`` cannot have the Definition at any size, the first reason that applies, or None."""
    if target.target not in rule.targets:
        return "target_not_eligible", f"only {', '.join(rule.targets)}"
    dtypes = sorted({tensor.dtype for tensor in rule.tensors} - set(target.dtypes))
    if dtypes:
        return "unsupported_dtype", ", ".join(dtypes)
    if rule.quantization is not None and rule.quantization not in target.quantization:
        return "unsupported_quantization", rule.quantization
    missing = sorted(set(rule.capabilities) - set(target.capabilities))
    if missing:
        return "missing_capability", ", ".join(missing)
    return None


def _decide(
    rule: Rule, generation: Generation, target: Target, class_gib: int, profiles: Sequence[str]
) -> Decision:  # fmt: skip
    if not set(rule.profiles) & set(profiles):
        return Decision(rule.name, rule.family, "profile_not_selected")
    reason = ineligible(rule, target)
    if reason is not None:
        return Decision(rule.name, rule.family, *reason)
    scale, least = largest_scale(rule, generation, target, class_gib), minimum_distinct_scale(rule, generation)
    workloads = _workloads(rule, generation, scale) if scale >= least else ()
    # The least scale rests on an enumeration up to a proven end; here the very nine are looked at once more.
    if len({tuple(workload.axes.items()) for workload in workloads}) != len(generation.slots):
        detail = f"largest common scale {scale}, nine distinct workloads need {least}"
        return Decision(rule.name, rule.family, "insufficient_capacity", detail)
    return Decision(rule.name, rule.family, "generated", "", scale, workloads)


def _workloads(rule: Rule, generation: Generation, scale: int) -> tuple[SlotWorkload, ...]:
    workloads = []
    for slot in generation.slots:
        axes = slot_axes(rule, slot, scale)
        identity = {"algorithm": generation.algorithm, "definition": rule.name, "slot": slot.slot, "axes": axes}
        uuid = f"llm-{rule.name}-{slot.slot}-{derived_key('llm_core workload', identity)[:16]}"
        peak = envelope(rule, axes).peak_bytes
        workloads.append(SlotWorkload(uuid, slot.slot, slot.role, slot.regime, axes, peak))
    return tuple(workloads)
