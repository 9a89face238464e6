"""The page of one target: leaderboard, score by problem, machine model, readiness, measurement sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from solbench.model.readiness import Readiness
from solbench.model.trace import Protocol
from solbench.site import chart, roofline, scatter, summary, text
from solbench.site.cells import SERIES, Cell, missing, number, protocol_words, ref
from solbench.site.leaderboard import leaderboard, not_scored, without_numbers
from solbench.site.links import Links
from solbench.site.machine import machine_model
from solbench.site.plot import Plot
from solbench.site.records import Book, MeasurementSet, Record, TargetRecords
from solbench.store import Descriptor


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
        "source": links.object(book.release.descriptor),
        "entries": leaderboard(links, target),
        "not_measured": not_scored(book, target.name),
    }


def _binds(book: Book, target: str) -> str:
    """How many bounds on a target each term sets: ``memory 120, valu 9``."""
    bounds = [workload.bounds[target].value for _, workload in book.workloads() if target in workload.bounds]
    counts = Counter(bound.result.binds for bound in bounds if bound.result is not None)
    return text.listed(
        f"{name} {text.grouped(count)}" for name, count in sorted(counts.items(), key=lambda i: (-i[1], i[0]))
    )


def target_page(book: Book, links: Links, target: TargetRecords) -> dict[str, Any]:
    entries = leaderboard(links, target)
    rows = []
    lines = []
    series = {record.name: SERIES[i % len(SERIES)] for i, record in enumerate(target.entries)}
    for problem in book.problems:
        cells, lanes = [], []
        for record in target.entries:
            found = book.problem_score(record, problem)
            if found is None or found.s is None:
                note = f"{found.n} of {found.total}" if found is not None else ""
                cells.append(missing(f"no score, {note}" if note else "no solution"))
                continue
            note = f"{found.n} of {found.total}"
            cells.append(number(links, found.s, text.score(found.s), record.descriptor, note))
            title = f"{record.value.name} on {problem.record.value.name}: {text.score(found.s)}, {note} workloads"
            lanes.append((chart.Point(series[record.name], found.s, title),))
        rows.append({"name": problem.record.value.name, "href": links.page("problem", problem.key), "cells": cells})
        if lanes:
            lines.append(chart.Line(problem.record.value.name, "", None, tuple(lanes)))
    return {
        "target": target_headline(book, links, target),
        "entries": entries,
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
        "sets": [_measurement_set(links, found) for found in target.sets],
        "readiness": [_readiness(links, record) for record in target.readiness],
    }


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
    reasons = Counter(without_numbers(item.reason or "") for item in missing_items)
    shown = [f"{text.grouped(count)}: {reason}" for reason, count in reasons.most_common(_REASONS)]
    where = "derived from the release" if matrix.place is None else text.listed(matrix.place.isolation)
    return {
        "level": matrix.level,
        "means": _LEVELS[matrix.level],
        "count": f"{text.grouped(matrix.ready)} of {text.grouped(matrix.total)}",
        "reasons": shown + (["and others"] if len(reasons) > _REASONS else []),
        "where": where,
        "ref": ref(links, f"readiness {matrix.level}", record.descriptor),
    }


def _measurement_set(links: Links, found: MeasurementSet) -> dict[str, Any]:
    header = found.header.value
    source = found.header.descriptor
    protocol = header.protocol
    return {
        "name": found.header.name.removesuffix("/header"),
        "ref": ref(links, "measurement set", source),
        "facts": [
            ("protocol", Cell(protocol_words(protocol.name))),
            ("processes a solution", number(links, protocol.processes, text.grouped(protocol.processes), source)),
            ("samples a process", number(links, protocol.samples, text.grouped(protocol.samples), source)),
            *_adaptive(links, protocol, source),
            (
                "longest call attempted",
                number(links, protocol.max_call_s, text.quantity(protocol.max_call_s, "s"), source),
            ),
            ("isolation", Cell(text.listed(protocol.isolation) or "none")),
            ("launch floor", number(links, header.floor_s, text.quantity(header.floor_s, "s"), source)),
            ("clocks", Cell(header.clocks)),
            ("traces", Cell(text.grouped(found.traces))),
            ("omissions", Cell(text.grouped(found.omissions))),
        ],
        "device": text.flat({**header.device, "cards": list(header.cards)} if header.cards else header.device),
        "environment": text.flat(header.environment),
    }


def _adaptive(links: Links, protocol: Protocol, source: Descriptor) -> list[tuple[str, Cell]]:
    """Where the number of samples depends on what they say."""
    if protocol.max_samples is None or protocol.precision is None:
        return []
    return [
        ("at most", number(links, protocol.max_samples, text.grouped(protocol.max_samples), source)),
        ("until both medians are known to", Cell(f"{100 * protocol.precision:g}{text.SPACE}%")),
    ]
