"""The page Status: for every workload and target, whether there is a bound and what became of each solution.

A *result* is what one solution came to on one workload of one target. Each workload has one for each solution that was
run on the target, or one that says why there is none, so that every column of the summary adds up to all workloads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from solbench.model.score import Score
from solbench.model.trace import Omission, Status, Trace
from solbench.site import text, verdict
from solbench.site.cells import STATES, Cell, missing, ref
from solbench.site.heads import heads_of
from solbench.site.links import Links
from solbench.site.records import Book, ProblemRecords, TargetRecords, WorkloadRecords

# Longer reasons are cut on this page; the workload's page has them whole.
MOST_OF_A_REASON: Final = 160


@dataclass(frozen=True)
class Kind:
    """What a result may be: its words, the class by which a table shows "only" such rows, and what it means."""

    words: str
    state: str
    meaning: str


# In the order in which a reader looks for them: what went wrong first.
KINDS: Final = {
    "failed": Kind(STATES["failed"], "failed", "the output was wrong, or the kernel did not compile or run; counts 0"),
    "timed_out": Kind("timed out", "failed", "the kernel did not end in time; counts 0, as any other failure"),
    "audit": Kind(
        STATES["audit"],
        "audit",
        "a time below the bound or above what the memory can move: the measurement or the bound is wrong. No score, "
        "and the entry’s total is withheld, until someone has found out which",
    ),
    "too_narrow": Kind(
        STATES["too_narrow"],
        "too_narrow",
        "PyTorch is already so close to the bound that the error of timing would decide",
    ),
    "unsupported": Kind(
        "unsupported", "not_attempted", "the machine or the harness cannot run it, so nothing was judged"
    ),
    "not_attempted": Kind(
        STATES["not_attempted"],
        "not_attempted",
        "this workload was left out, with the reason beside it. That is not a pass",
    ),
    "not_timed": Kind(
        STATES["not_timed"],
        "not_timed",
        "nobody measured this target for this release, or the kernel was only checked. Its bounds stand; no time is "
        "borrowed from another machine",
    ),
    "no_bound": Kind(
        STATES["no_bound"],
        "no_bound",
        "the reference could not be traced or priced, so there is nothing to measure the time against",
    ),
    "no_solution": Kind("no solution", "missing", "the entry has none for this problem, which then counts 0"),
    "scored": Kind(STATES["scored"], "", "right, timed, and with a score S"),
    "not_for_it": Kind("not for this target", "missing", "its sizes were made for another target"),
}
# Scores first, then what keeps a workload from one.
_SUMMARY: Final = ("scored", *(kind for kind in KINDS if kind != "scored"))
_ORDER: Final = {kind: position for position, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Result:
    """``solution`` is "" where none was run on the target at all."""

    solution: str
    kind: str
    reason: str = ""


def meanings(kinds: Sequence[str]) -> list[tuple[str, str]]:
    """(words, meaning) of some kinds, for the pages that explain them."""
    return [(KINDS[kind].words, KINDS[kind].meaning) for kind in kinds]


def solutions_run(book: Book, target: str) -> list[str]:
    """Names of the solutions that have a score, or a reason for none, on a target."""
    return sorted({record.value.solution for _, w in book.workloads() for record in w.scores.get(target, ())})


def results(
    book: Book, problem: ProblemRecords, workload: WorkloadRecords, target: str, names: Sequence[str]
) -> tuple[Result, ...]:
    """One for each of ``names``, the solutions run on ``target``; one of no solution where there are none."""
    if not workload.on(target):
        return tuple(Result(name, "not_for_it") for name in names) or (Result("", "not_for_it"),)
    scores = {record.value.solution: record.value for record in workload.scores.get(target, ())}
    solved = {record.value.name for record in problem.solutions}
    found = []
    for name in names:
        if name in scores:
            found.append(Result(name, *_kind(book, scores[name])))
        elif name in solved:
            found.append(Result(name, "not_attempted", "the release has no score of it"))
        else:
            found.append(Result(name, "no_solution"))
    return tuple(found) or (Result("", "not_timed"),)


def _kind(book: Book, score: Score) -> tuple[str, str]:
    """A score's kind and reason: its state, told apart further by the verdict of the trace that it refers to."""
    record: Trace | Omission | None = None
    if score.trace is not None and score.state in ("failed", "not_attempted"):
        record = book.traces[score.trace.digest].value
    status = record.status if isinstance(record, Trace) else None
    reason = score.reason or ""
    if score.state == "failed" and status is Status.TIMEOUT:
        return "timed_out", reason.removeprefix(f"{status}: ")
    if score.state == "not_attempted" and status is Status.UNSUPPORTED:
        return "unsupported", reason.removeprefix(f"{status}: ")
    return score.state, reason


def bounded(workload: WorkloadRecords, target: str) -> tuple[str, str]:
    """("bounded", ""), ("no_bound", reason) or ("not_for_it", "")."""
    if not workload.on(target):
        return "not_for_it", ""
    record = workload.bounds.get(target)
    if record is None:
        return "no_bound", "the release has none"
    return ("no_bound", record.value.reason or "") if record.value.result is None else ("bounded", "")


def status_page(book: Book, links: Links) -> dict[str, Any]:
    names = {target.name: solutions_run(book, target.name) for target in book.targets}
    by_bound: dict[str, Counter[str]] = {target.name: Counter() for target in book.targets}
    by_result: dict[tuple[str, str], Counter[str]] = {
        (target.name, solution): Counter() for target in book.targets for solution in names[target.name] or ("",)
    }
    rows = []
    total = 0
    for problem in book.problems:
        named = heads_of(links, problem)
        for workload in problem.workloads:
            total += 1
            cells = []
            for target in book.targets:
                bound = bounded(workload, target.name)
                found = results(book, problem, workload, target.name, names[target.name])
                by_bound[target.name][bound[0]] += 1
                for result in found:
                    by_result[target.name, result.solution][result.kind] += 1
                cells.append({**_cells(bound, found), "wide": bool(names[target.name])})
            rows.append(
                {
                    "problem": problem.record.value.name,
                    "problem_href": links.page("problem", problem.key, named[workload.uuid].anchor),
                    "head": named[workload.uuid],
                    "cells": cells,
                }
            )
    of = text.grouped(total)
    return {
        "total": of,
        "bounds": [_bound_row(links, target, by_bound[target.name], of) for target in book.targets],
        "columns": [
            _column(links, target, solution) for target in book.targets for solution in names[target.name] or [""]
        ],
        "states": [
            {
                "words": KINDS[kind].words,
                "state": KINDS[kind].state,
                "meaning": text.sentence(KINDS[kind].meaning),
                "counts": [text.grouped(counts[kind]) for counts in by_result.values()],
            }
            for kind in _SUMMARY
        ],
        "sums": [f"{text.grouped(counts.total())} of {of}" for counts in by_result.values()],
        "emulated": [row for target in book.targets if (row := _emulated_row(book, links, target)) is not None],
        "targets": [{"name": t.name, "href": links.page("target", t.name)} for t in book.targets],
        "untimed": text.listed(t.name for t in book.targets if not names[t.name]),
        "rows": rows,
        "sections": [
            ref(links, f"section {stage}", descriptor)
            for stage, descriptor, _ in book.sections
            if stage in ("bounds", "scores", "verdicts")
        ],
    }


def _bound_row(links: Links, target: TargetRecords, counts: Counter[str], of: str) -> dict[str, str]:
    return {
        "name": target.name,
        "href": links.page("target", target.name),
        "bounded": text.grouped(counts["bounded"]),
        "no_bound": text.grouped(counts["no_bound"]),
        "not_for_it": text.grouped(counts["not_for_it"]),
        "sum": f"{text.grouped(counts.total())} of {of}",
    }


def _emulated_row(book: Book, links: Links, target: TargetRecords) -> dict[str, Any] | None:
    counts = verdict.counts(book, target.name)
    if not counts:
        return None
    return {
        "name": target.name,
        "href": links.page("target", target.name),
        "counts": [text.grouped(counts[kind]) for kind in verdict.KINDS],
        "sum": text.grouped(counts.total()),
    }


def _column(links: Links, target: TargetRecords, solution: str) -> dict[str, str]:
    return {"target": target.name, "href": links.page("target", target.name), "solution": solution or "no solution run"}


def _cells(bound: tuple[str, str], found: Sequence[Result]) -> dict[str, Any]:
    """A workload on one target: the words on its bound, those on its results, and the place of the worst of these."""
    kind, reason = bound
    if kind == "not_for_it":
        return {"bound": missing(KINDS[kind].words), "results": [], "order": ""}
    words = Cell("bounded") if kind == "bounded" else missing(_joined(KINDS[kind].words, reason), "no_bound")
    same: dict[tuple[str, str], list[str]] = {}
    for result in found:
        same.setdefault((result.kind, result.reason), []).append(result.solution)
    shown = [
        {"who": text.listed(who), "words": _joined(KINDS[kind].words, reason), "state": KINDS[kind].state}
        for (kind, reason), who in same.items()
    ]
    return {"bound": words, "results": shown, "order": str(min(_ORDER[result.kind] for result in found))}


def _joined(words: str, reason: str) -> str:
    cut = reason if len(reason) <= MOST_OF_A_REASON else reason[: MOST_OF_A_REASON - 1] + "…"
    return f"{words}: {cut}" if cut else words
