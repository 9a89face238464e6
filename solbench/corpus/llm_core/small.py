"""Generated workloads at sizes that a CPU computes many times, for controls.

The rule decides the axes as ever, at a smaller common scale and with model dimensions between those of its smoke row
and the slot's own: groups, pages and blocks keep fitting together. Lengths and offsets are drawn anew for the size.
"""

from __future__ import annotations

from collections.abc import Iterator

from solbench.corpus.definitions import Template
from solbench.corpus.llm_core.generate import Decision
from solbench.corpus.llm_core.rules import Generation, Rule, Slot
from solbench.corpus.llm_core.scale import envelope, slot_axes
from solbench.corpus.reduce import Instance

LIMIT_BYTES = 6 * 2**20
# Down to this common scale model dimensions stay as they are: no rule has two equal slots from here on
# (`minimum_distinct_scale`). Slots shrink by scales of their own, so two small workloads may still be equal.
LEAST_SCALE = 288
_DOUBLINGS = 8


def small_instances(
    template: Template, rule: Rule, generation: Generation, decision: Decision, limit_bytes: int = LIMIT_BYTES
) -> list[Instance]:
    """One instance a workload of ``decision``, with the workload's id, whose peak memory by the rule is at most
    ``limit_bytes`` as far as the smoke row's dimensions allow. ``note`` says what was reduced, null if nothing was."""
    slots = {slot.slot: slot for slot in generation.slots}
    instances = []
    for workload in decision.workloads:
        axes = workload.axes
        for axes in _sizes(rule, slots[workload.slot], decision.scale or 1):
            if envelope(rule, axes).peak_bytes <= limit_bytes:
                break
        small = template.workload(workload.uuid, axes)
        changed = [f"{name} {size} -> {axes[name]}" for name, size in workload.axes.items() if axes[name] != size]
        note = f"reduced: {', '.join(changed)}" if changed else None
        instances.append(
            Instance(template.definition, small, template.definition.resolve_axes(axes, template.key), note)
        )
    return instances


def _sizes(rule: Rule, slot: Slot, scale: int) -> Iterator[dict[str, int]]:
    """Axes of the slot, smaller and smaller: first by the common scale, then by dimensions that are no extents."""
    full = slot_axes(rule, slot, scale)
    yield full
    while scale > LEAST_SCALE:
        scale = max(LEAST_SCALE, scale // 2)
        yield slot_axes(rule, slot, scale)
    least, own = rule.axes["smoke"], rule.axes[slot.sizes]
    at_least = slot_axes(rule, slot, scale)
    for doublings in range(_DOUBLINGS, -1, -1):
        yield {
            name: min(size, least[name] * 2**doublings)  # type: ignore[operator]
            if isinstance(own[name], int) and isinstance(least[name], int)
            else size
            for name, size in at_least.items()
        }
