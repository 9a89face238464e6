"""The page of one target: leaderboard, score by problem, machine model, readiness, measurement sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from solbench.model.readiness import Readiness
from solbench.model.score import Entry
from solbench.site import chart, roofline, scatter, summary, text, verdict
from solbench.site.cells import SERIES, Cell, missing, number, ref
from solbench.site.leaderboard import alike, leaderboard, not_scored, spanned
from solbench.site.links import Links
from solbench.site.machine import machine_model
from solbench.site.plot import Plot
from solbench.site.records import Book, ProblemRecords, Record, TargetRecords
from solbench.site.sets import measurement_set


def target_headline(book: Book, links: Links, target: TargetRecords) -> dict[str, Any]:
    """What is known on one target in a few lines, and what is not, with the reasons."""
    state = target.state
    return {
        "name": target.name,
        "href": links.page("target", target.name),
        "timed": state.state == "timed",
        "device": state.device or "no card measured",
        "measured": text.sentence(state.device) if state.device else "",
        "note": state.note,
        "sentence": text.sentence(state.note),
        "bounds": f"{text.grouped(state.bounds)} of {text.grouped(state.workloads)}",
        "timed_count": f"{text.grouped(state.timed)} of {text.grouped(state.workloads)}",
        "binds": _binds(book, target.name),
        "code": _code(book, target.name),
        "emulated": verdict.counted(book, target.name),
        "source": links.object(book.release.descriptor),
        "entries": leaderboard(book, links, target),
        "not_measured": not_scored(book, target.name),
    }


def _binds(book: Book, target: str) -> str:
    """How many bounds on a target each term sets: ``memory 120, valu 9``."""
    bounds = [workload.bounds[target].value for _, workload in book.workloads() if target in workload.bounds]
    counts = Counter(bound.result.binds for bound in bounds if bound.result is not None)
    return text.listed(
        f"{name} {text.grouped(count)}" for name, count in sorted(counts.items(), key=lambda i: (-i[1], i[0]))
    )


def _code(book: Book, target: str) -> str:
    """How many of the candidates that are compiled for a target came out as code; "" where none was."""
    records = [record.value for _, workload in book.workloads() for record in workload.code.get(target, ())]
    if not records:
        return ""
    count = sum(record.status == "COMPILED" for record in records)
    return f"compiled for {text.grouped(count)} of {text.grouped(len(records))} pairs of workload and solution"


def target_page(book: Book, links: Links, target: TargetRecords) -> dict[str, Any]:
    entries = leaderboard(book, links, target)
    rows = []
    lines = []
    series = {record.name: SERIES[i % len(SERIES)] for i, record in enumerate(target.entries)}
    counted = [problem for problem in book.problems if any(book.problem_score(e, problem) for e in target.entries)]
    for problem in counted:
        cells, lanes = [], []
        for record in target.entries:
            cell = _problem_cell(book, links, target, record, problem)
            cells.append(cell)
            if cell.sort:
                title = f"{record.value.name} on {problem.record.value.name}: {cell.text}, {cell.note}"
                lanes.append((chart.Point(series[record.name], float(cell.sort), title),))
        rows.append({"name": problem.record.value.name, "href": links.page("problem", problem.key), "cells": cells})
        if lanes:
            lines.append(chart.Line(problem.record.value.name, "", None, tuple(lanes)))
    return {
        "target": target_headline(book, links, target),
        "entries": entries,
        "left_out": _left_out(book, target, counted),
        "entry_names": [record.value.name for record in target.entries],
        "rows": rows,
        "means": [summary.mean(cells) for cells in zip(*(row["cells"] for row in rows))],
        "chart": chart.score_chart(
            "scores",
            f"Score by problem on {target.name}",
            "One row a problem, one dot an entry; 0.5 is the speed of the baseline, 1 is the bound. "
            "The table below holds the same numbers.",
            lines,
            [(series[record.name], record.value.name) for record in target.entries],
        ),
        "plots_shown": _plots(book, target, series),
        "machine": machine_model(links, target.hardware),
        "hardware": links.page("hardware"),
        "sets": [measurement_set(links, found) for found in target.sets],
        "readiness": [_readiness(links, record) for record in target.readiness],
    }


def _problem_cell(
    book: Book, links: Links, target: TargetRecords, entry: Record[Entry], problem: ProblemRecords
) -> Cell:
    """An entry's score on a problem, over how many of its workloads; a problem that it does not solve counts 0."""
    found = book.problem_score(entry, problem)
    if found is None:
        return missing("no solution")
    count = f"{found.n} of {found.total}"
    if found.s is None:
        return missing("no score", note=count)
    tried = any(s.value.solution == entry.value.name for w in problem.workloads for s in w.scores.get(target.name, ()))
    return number(links, found.s, text.score(found.s), entry.descriptor, count if tried else f"no solution, {count}")


def _left_out(book: Book, target: TargetRecords, counted: Sequence[ProblemRecords]) -> str:
    """How many problems are no part of any entry, and why; "" for none."""
    keys = {problem.key for problem in counted}
    rest = [problem for problem in book.problems if problem.key not in keys]
    elsewhere = [problem for problem in rest if not any(w.on(target.name) for w in problem.workloads)]
    own = len(rest) - len(elsewhere)
    parts = [f"{text.plural(len(elsewhere), 'problem')} without a workload for this target"] if elsewhere else []
    parts += [f"{text.plural(own, 'problem')} that no entry counts"] if own else []
    return text.sentence(f"not shown: {text.listed(parts)}") if parts else ""


def _plots(book: Book, target: TargetRecords, series: Mapping[str, str]) -> list[Plot]:
    """Every scored workload of each entry against its bound, and all workloads on the roofline."""
    by_name = {record.value.name: series[record.name] for record in target.entries}
    plots = [
        scatter.entry_scatter(book, record, series[record.name], f"scatter-{number}")
        for number, record in enumerate(target.entries)
    ]
    return [plot for plot in (*plots, roofline.target_roofline(book, target.name, by_name, "roofline")) if plot]


_LEVELS = {
    "static": "every workload has an attested bound, and every candidate that is compiled for the target its code",
    "canary": "the smallest and the largest workload of each problem ran, by the baseline and every solution",
    "full": "every workload ran, by the baseline and every solution",
}
# Of what is not ready, so much is told on the page; all of it stands in the object.
_REASONS = 5


def _readiness(links: Links, record: Record[Readiness]) -> dict[str, Any]:
    matrix = record.value
    missing_items = [item for item in matrix.items if not item.ready]
    reasons = sorted(alike(item.reason or "" for item in missing_items), key=len, reverse=True)
    shown = [f"{text.grouped(len(group))}: {spanned(group)}" for group in reasons[:_REASONS]]
    where = "derived from the release" if matrix.place is None else text.listed(matrix.place.isolation)
    return {
        "level": matrix.level,
        "means": _LEVELS[matrix.level],
        "count": f"{text.grouped(matrix.ready)} of {text.grouped(matrix.total)}",
        "reasons": shown + (["and others"] if len(reasons) > _REASONS else []),
        "where": where,
        "ref": ref(links, f"readiness {matrix.level}", record.descriptor),
    }
