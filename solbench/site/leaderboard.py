"""What a target's entries amount to: the leaderboard, and what has no score, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from solbench.model.score import Entry
from solbench.site import text
from solbench.site.cells import STATES, Cell, missing, number, protocol_words, ref
from solbench.site.links import Links
from solbench.site.records import Book, Record, TargetRecords

_NUMBER = re.compile(r"\b\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def alike(reasons: Iterable[str]) -> list[list[str]]:
    """Reasons that differ in their numbers only, together, in the order of their first."""
    groups: dict[str, list[str]] = {}
    for reason in reasons:
        groups.setdefault(_NUMBER.sub("…", reason), []).append(reason)
    return list(groups.values())


def spanned(reasons: Sequence[str]) -> str:
    """One line for reasons that are :func:`alike`: where numbers differ, the least and the largest of them."""
    between = _NUMBER.split(reasons[0])
    shown = [between[0]]
    for numbers, words in zip(zip(*map(_NUMBER.findall, reasons)), between[1:]):
        low, high = min(numbers, key=float), max(numbers, key=float)
        shown += [low if float(low) == float(high) else f"{low}{text.SPACE}–{text.SPACE}{high}", words]
    return "".join(shown)


def leaderboard(book: Book, links: Links, target: TargetRecords) -> list[dict[str, Any]]:
    """Entries by score, withheld ones last; ranks only where all denominators are equal."""
    order = sorted(target.entries, key=lambda e: (e.value.s is None, -(e.value.s or 0.0), e.value.name))
    shown = [entry.value for entry in order if entry.value.s is not None]
    comparable = len({(e.scored + e.failed, e.workloads, e.problem_n, e.problem_total) for e in shown}) == 1
    rows = []
    for position, record in enumerate(order):
        entry = record.value
        ranked = comparable and entry.s is not None
        rows.append(
            {
                "record": record.name,
                "rank": str(position + 1) if ranked else "—",
                "comparable": comparable,
                "name": entry.name,
                "ref": ref(links, f"entry {entry.name}", record.descriptor),
                "languages": _languages(book, entry.name),
                "protocol": protocol_words(entry.protocol),
                **_entry_numbers(links, record),
                "withheld": entry.withheld or "",
                "workloads": f"{text.grouped(entry.scored + entry.failed)} of {text.grouped(entry.workloads)}",
                "problems": f"{text.grouped(entry.problem_n)} of {text.grouped(entry.problem_total)}",
                "states": _state_counts(entry),
                "trust": [f"{text.grouped(count)} {label}" for label, count in entry.trust.items()],
            }
        )
    return rows


def _languages(book: Book, name: str) -> str:
    """What the solutions of one name are written in."""
    solutions = (record.value for problem in book.problems for record in problem.solutions)
    return (
        text.listed(sorted({word for s in solutions if s.name == name for word in s.spec.languages})) or "no solutions"
    )


def _entry_numbers(links: Links, record: Record[Entry]) -> dict[str, Cell]:
    entry, source = record.value, record.descriptor
    interval = ""
    if entry.s_low is not None and entry.s_high is not None:
        interval = f"{text.score(entry.s_low)}{text.SPACE}–{text.SPACE}{text.score(entry.s_high)}"

    def optional(value: float | None, shown: Any, note: str = "", words: str = "") -> Cell:
        if value is None:
            return missing(words or ("withheld" if entry.withheld else "not known"), "missing", "", links, source)
        return number(links, value, shown(value), source, note)

    words = f"withheld: {entry.withheld}" if entry.withheld else "no score"
    return {
        "s": optional(entry.s, text.score, interval, words),
        "s_without_launch_bound": optional(entry.s_without_launch_bound, text.score),
        "speedup": optional(entry.geometric_mean_speedup, text.ratio),
        "fast_1": optional(entry.fast_1, text.share),
        "fast_2": optional(entry.fast_2, text.share),
    }


def _state_counts(entry: Entry) -> list[str]:
    counts = [(state, getattr(entry, state)) for state in STATES]
    return [f"{text.grouped(count)} {STATES[state]}" for state, count in counts if count]


def not_scored(book: Book, target: str) -> list[dict[str, str]]:
    """Groups of (workload, solution) pairs without a score on a target, by state and reason, the largest first.

    Reasons that differ in their numbers only are one group, which gives the least and the largest of them.
    """
    groups: dict[str, list[str]] = {}
    total = 0
    for _, workload in book.workloads():
        for record in workload.scores.get(target, ()):
            total += 1
            if record.value.state != "scored":
                groups.setdefault(record.value.state, []).append(record.value.reason or "")
    parts = [(state, reasons) for state, found in groups.items() for reasons in alike(found)]
    found = []
    for state, reasons in sorted(parts, key=lambda part: (-len(part[1]), part[0], part[1][0])):
        words = spanned(reasons)
        count = f"{text.grouped(len(reasons))} of {text.grouped(total)}"
        found.append({"count": count, "state": state, "words": STATES[state] + (f": {words}" if words else "")})
    return found
