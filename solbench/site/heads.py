"""What a workload is called on a page: a short label, its shape, and where its own page is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solbench.model.definition import AxisConst
from solbench.site import text
from solbench.site.cells import Ref, ref
from solbench.site.links import Links, slug
from solbench.site.records import ProblemRecords, TargetRecords


@dataclass(frozen=True)
class Head:
    """``record``: the logical name of the workload; ``anchor``: its row on the problem's page; ``href``: its page."""

    label: str
    uuid: str
    anchor: str
    shape: str
    record: str
    ref: Ref
    href: str


def heads_of(links: Links, problem: ProblemRecords) -> dict[str, Head]:
    """The head of each of a problem's workloads by uuid, in their order."""
    labels = short_labels([w.uuid for w in problem.workloads if not w.slots])
    axes = [name for name, axis in problem.record.value.axes.items() if not isinstance(axis, AxisConst)]
    found = {}
    for w in problem.workloads:
        label = "; ".join(f"{slot}, {target}" for target, slot in w.slots.items()) if w.slots else labels[w.uuid]
        found[w.uuid] = Head(
            label=label,
            uuid=w.uuid,
            anchor=f"w-{slug(w.uuid)}",
            shape=text.shape(w.axes, axes) or "no free axes",
            record=w.record.name,
            ref=ref(links, "workload", w.record.descriptor),
            href=links.page("workload", w.record.name),
        )
    return found


def labels_of(heads: Mapping[str, Head]) -> dict[str, str]:
    """The label of each workload by its uuid."""
    return {uuid: head.label for uuid, head in heads.items()}


def short_labels(names: Sequence[str]) -> dict[str, str]:
    """Names without what all of them begin with, up to a dash or underscore: ``aka-softmax-w0`` -> ``w0``."""
    first, last = min(names, default=""), max(names, default="")
    common = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    cut = max(first.rfind("-", 0, common), first.rfind("_", 0, common)) + 1
    if len(names) == 1:
        cut = max(first.rfind("-"), first.rfind("_")) + 1
    return {name: name[cut:] or name for name in names}


def untimed(target: TargetRecords, problem: ProblemRecords) -> dict[str, str]:
    """What to say of a target on which nothing of a problem was timed: a badge, and a sentence that says why."""
    if not any(workload.on(target.name) for workload in problem.workloads):
        return {"badge": "not for it", "sentence": "No workload of this problem is made for this target."}
    note = target.state.note
    words = "nothing of this problem was run on it" if target.state.state == "timed" else note
    return {"badge": "not timed", "sentence": text.sentence(words)}
