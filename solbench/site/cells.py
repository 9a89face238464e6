"""What a page puts in a table cell: a number with its unit, interval and object, or the words in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solbench.model.score import Estimate, Score
from solbench.site import text
from solbench.site.links import Links
from solbench.site.records import Record, WorkloadRecords
from solbench.store import Descriptor

SERIES = ("a", "b", "c", "d", "e", "f")
STATES = {
    "scored": "scored",
    "failed": "failed",
    "audit": "in audit",
    "too_narrow": "too narrow to score",
    "not_timed": "not timed",
    "no_bound": "no bound",
    "not_attempted": "not measured",
}
HEADROOM = {"narrow": "below 2×", "good": "up to 15×", "loose": "up to 100×", "vacuous": "above 100×"}
PROTOCOLS = {"quick": "quick protocol", "full": "full protocol", "custom": "custom protocol"}


@dataclass(frozen=True)
class Cell:
    """A number on a page, or the words that stand in its place.

    ``sort`` is the exact value ("" for missing, which sorts last); ``record`` the logical name of the artifact that
    this cell stands for, where it is the one place that does.
    """

    text: str
    note: str = ""
    href: str = ""
    title: str = ""
    sort: str = ""
    state: str = ""
    record: str = ""


@dataclass(frozen=True)
class Ref:
    """An object: what it is called here, its digest in full and short, its size and address."""

    label: str
    digest: str
    short: str
    size: str
    href: str


def ref(links: Links, label: str, descriptor: Descriptor) -> Ref:
    return Ref(
        label,
        descriptor.digest,
        text.short_digest(descriptor.digest),
        text.quantity(descriptor.size, "B"),
        links.object(descriptor),
    )


def number(links: Links, value: float, shown: str, source: Descriptor, note: str = "", record: str = "") -> Cell:
    """A number that links to the object which holds it."""
    title = f"{text.exact(value)} in {source.kind} {source.digest}"
    return Cell(shown, note, links.object(source), title, text.exact(value), record=record)


def missing(
    words: str,
    state: str = "missing",
    record: str = "",
    links: Links | None = None,
    source: Any = None,
    note: str = "",
) -> Cell:
    """Words in the place of a number; never 0."""
    href = links.object(source) if links is not None and source is not None else ""
    return Cell(words, note, href, title=f"{source.kind} {source.digest}" if href else "", state=state, record=record)


def estimate(links: Links, value: Estimate, source: Descriptor) -> Cell:
    """A time with its interval and the coverage of that."""
    note = f"{text.span(value.low_s, value.high_s, 's', value.point_s)} ({text.percent(value.coverage)})"
    return number(links, value.point_s, text.quantity(value.point_s, "s"), source, note)


def score_cell(links: Links, record: Record[Score]) -> Cell:
    """S with its interval, or the state and its reason."""
    value = record.value
    if value.state == "scored" and value.s is not None:
        note = ""
        if value.s_low is not None and value.s_high is not None:
            note = f"{text.score(value.s_low)}{text.SPACE}–{text.SPACE}{text.score(value.s_high)}"
        return number(links, value.s, text.score(value.s), record.descriptor, note, record.name)
    words = STATES[value.state] + (f": {value.reason}" if value.reason else "")
    if value.state == "failed":
        return Cell(
            "0",
            words,
            links.object(record.descriptor),
            f"score {record.descriptor.digest}",
            "0.0",
            "failed",
            record.name,
        )
    return missing(words, value.state, record.name, links, record.descriptor)


def bound_cells(links: Links, workload: WorkloadRecords, target: str) -> tuple[Cell, Cell]:
    """T_SOL and what binds it."""
    record = workload.bounds.get(target)
    if not workload.on(target):
        return missing("not for it"), missing("—")
    if record is None:
        return missing(f"no bound on {target}"), missing("—")
    result = record.value.result
    if result is None:
        words = f"no bound: {record.value.reason}"
        return missing(words, "missing", record.name, links, record.descriptor), missing("—")
    note = "" if result.coverage == "complete" else "partial coverage"
    shown = text.quantity(result.t_sol_s, "s")
    return number(links, result.t_sol_s, shown, record.descriptor, note, record.name), Cell(result.binds)


def headroom_cell(links: Links, record: Record[Score]) -> Cell:
    value = record.value
    if value.headroom is None:
        return missing("—")
    words = f"{value.headroom_class}{', launch-bound' if value.launch_bound else ''}"
    return number(links, value.headroom, text.ratio(value.headroom), record.descriptor, words)


def protocol_words(name: str) -> str:
    return PROTOCOLS.get(name, name)
