"""The content of every page as plain values: text, numbers with their object, rows in order. Templates only lay out.

Whatever stands for one record carries its logical name, so that the renderer can count them in the finished pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from solbench.model.configuration import Configuration
from solbench.model.readiness import Readiness
from solbench.model.score import Entry
from solbench.model.trace import Protocol
from solbench.site import chart, status, summary, text
from solbench.site.cells import HEADROOM, SERIES, STATES, Cell, missing, number, protocol_words, ref
from solbench.site.links import Links
from solbench.site.machine import machine_model
from solbench.site.records import Book, Bound, MeasurementSet, ProblemRecords, Record, TargetRecords
from solbench.store import Descriptor

_NUMBER = re.compile(r"\b\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def base(book: Book, links: Links, kind: str, key: str, title: str) -> dict[str, Any]:
    """What every page has: its title, navigation, the release."""
    release = book.release
    entries = [("index", "", "Release"), ("corpus", "", "Corpus")]
    entries += [("target", target.name, target.name) for target in book.targets]
    entries += [("hardware", "", "Hardware"), ("status", "", "Status"), ("compare", "", "Compare")]
    entries += [("method", "", "Method"), ("verify", "", "Verify")]
    return {
        "title": title,
        "asset": links.asset,
        "nav": [
            {"label": label, "href": links.page(page, page_key), "current": (page, page_key) == (kind, key)}
            for page, page_key, label in entries
        ],
        "release_name": release.value.name,
        "root": ref(links, f"release {release.value.name}", release.descriptor),
        "home": links.page("index"),
        "method": links.page("method"),
        "verify": links.page("verify"),
        "verify_command": f"solbench verify release/{release.value.name}.zip --expect-root {release.descriptor.digest}",
    }


def index_page(book: Book, links: Links) -> dict[str, Any]:
    release = book.release.value
    return {
        "counts": {
            "problems": text.plural(release.problems, "problem"),
            "workloads": text.plural(release.workloads, "workload"),
            "targets": text.plural(len(release.targets), "target"),
            "corpora": text.listed(release.corpora),
        },
        "targets": [target_headline(book, links, target) for target in book.targets],
        "columns": [{"name": target.name, "timed": target.state.state == "timed"} for target in book.targets],
        "rows": [_problem_row(book, links, problem) for problem in book.problems],
        "sections": [
            {"stage": stage, "count": text.grouped(count), "ref": ref(links, f"section {stage}", descriptor)}
            for stage, descriptor, count in book.sections
        ],
        "problems_total": len(book.problems),
    }


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


def leaderboard(links: Links, target: TargetRecords) -> list[dict[str, Any]]:
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
        "fast_1": optional(entry.fast_1, text.percent),
        "fast_2": optional(entry.fast_2, text.percent),
    }


def _state_counts(entry: Entry) -> list[str]:
    counts = [(state, getattr(entry, state)) for state in STATES]
    return [f"{text.grouped(count)} {STATES[state]}" for state, count in counts if count]


def not_scored(book: Book, target: str) -> list[dict[str, str]]:
    """Groups of (workload, solution) pairs without a score on a target, by state and reason, the largest first.

    Reasons that differ in their numbers only are one group, in which the numbers give way to dots.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    total = 0
    for _, workload in book.workloads():
        for record in workload.scores.get(target, ()):
            total += 1
            if record.value.state != "scored":
                reason = record.value.reason or ""
                groups.setdefault((record.value.state, _NUMBER.sub("…", reason)), []).append(reason)
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    found = []
    for (state, pattern), reasons in order:
        words = reasons[0] if len(set(reasons)) == 1 else pattern
        count = f"{text.grouped(len(reasons))} of {text.grouped(total)}"
        found.append({"count": count, "state": state, "words": STATES[state] + (f": {words}" if words else "")})
    return found


def _problem_row(book: Book, links: Links, problem: ProblemRecords) -> dict[str, Any]:
    definition = problem.record.value
    cells: list[dict[str, Any]] = []
    for target in book.targets:
        own = [workload for workload in problem.workloads if workload.on(target.name)]
        bounds = [workload.bounds[target.name] for workload in own if target.name in workload.bounds]
        cells.append(_bound_range(links, bounds, len(own)))
        if target.state.state == "timed":
            cells.append({"cells": [_best_score(book, links, target, problem)], "sort": "", "kind": "best"})
            cells[-1]["sort"] = cells[-1]["cells"][0].sort
    dtypes = sorted({spec.dtype for spec in (*definition.inputs.values(), *definition.outputs.values())})
    return {
        "name": definition.name,
        "key": problem.key,
        "href": links.page("problem", problem.key),
        "corpus": problem.corpus,
        "op_type": definition.op_type,
        "dtypes": text.listed(dtypes),
        "suite": definition.suite or "none",
        "role": definition.role,
        "workloads": text.grouped(len(problem.workloads)),
        "solutions": text.listed(sorted(record.value.name for record in problem.solutions)) or "none",
        "ref": ref(links, "definition", problem.record.descriptor),
        "cells": cells,
    }


def _bound_range(links: Links, bounds: Sequence[Record[Bound]], total: int) -> dict[str, Any]:
    """Smallest and largest T_SOL over a problem's workloads, each linked to its bound, and what binds."""
    known = sorted(
        ((record.value.result, record) for record in bounds if record.value.result is not None),
        key=lambda pair: (pair[0].t_sol_s, pair[1].name),
    )
    if not known:
        return {"kind": "bound", "sort": "", "cells": [missing("no bound" if total else "no workload")], "binds": "—"}
    ends = [known[0]] if len(known) == 1 else [known[0], known[-1]]
    cells = [number(links, r.t_sol_s, text.quantity(r.t_sol_s, "s"), record.descriptor) for r, record in ends]
    binds = Counter(result.binds for result, _ in known)
    words = [name if len(binds) == 1 else f"{name} {count}" for name, count in sorted(binds.items())]
    if len(known) < total:
        words.append(f"{len(known)} of {total} bounded")
    return {"kind": "bound", "sort": cells[-1].sort, "cells": cells, "binds": text.listed(words)}


def _best_score(book: Book, links: Links, target: TargetRecords, problem: ProblemRecords) -> Cell:
    best: tuple[float, Record[Entry], str] | None = None
    for entry in target.entries:
        found = book.problem_score(entry, problem)
        if found is not None and found.s is not None and (best is None or found.s > best[0]):
            best = (found.s, entry, f"{entry.value.name}, {found.n} of {found.total}")
    if best is None:
        return missing("not measured" if target.entries else "not timed")
    return number(links, best[0], text.score(best[0]), best[1].descriptor, best[2])


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
        "machine": machine_model(links, target.hardware),
        "hardware": links.page("hardware"),
        "sets": [_measurement_set(links, found) for found in target.sets],
        "readiness": [_readiness(links, record) for record in target.readiness],
    }


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
    reasons = Counter(_NUMBER.sub("…", item.reason or "") for item in missing_items)
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


def corpus_page(book: Book, links: Links) -> dict[str, Any]:
    rows = [_problem_row(book, links, problem) for problem in book.problems]
    corpora = [
        {
            "name": corpus,
            "problems": text.plural(sum(row["corpus"] == corpus for row in rows), "problem"),
            "workloads": text.plural(sum(len(p.workloads) for p in book.problems if p.corpus == corpus), "workload"),
        }
        for corpus in sorted({problem.corpus for problem in book.problems})
    ]
    configurations = [_configuration(links, record) for target in book.targets for record in target.configurations]
    return {"rows": rows, "corpora": corpora, "configurations": configurations}


def _configuration(links: Links, record: Record[Configuration]) -> dict[str, Any]:
    value = record.value
    generated = [decision for decision in value.decisions if decision.workloads]
    left_out = [f"{d.problem}: {d.status}, {d.detail}".rstrip(", ") for d in value.decisions if not d.workloads]
    return {
        "corpus": value.corpus,
        "target": value.target,
        "href": links.page("target", value.target),
        "capacity": f"{value.capacity_class_gib}{text.SPACE}GiB",
        "generated": f"{len(generated)} of {text.plural(len(value.decisions), 'Definition')}",
        "workloads": text.plural(sum(len(decision.workloads) for decision in generated), "workload"),
        "left_out": left_out,
        "ref": ref(links, "configuration", record.descriptor),
    }


def method_page(book: Book, links: Links) -> dict[str, Any]:
    states = status.meanings([kind for kind in status.KINDS if kind != "scored"])
    return {
        "states": states,
        "headroom": list(HEADROOM.items()),
        "targets": [target_headline(book, links, t) for t in book.targets],
    }


def verify_page(book: Book, links: Links) -> dict[str, Any]:
    root = book.release.descriptor
    return {"object_command": f"b3sum objects/{root.path}", "root_hex": root.digest.removeprefix("blake3:")}
