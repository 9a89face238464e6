"""The page of all problems, and a problem as a row of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from solbench.model.configuration import Configuration
from solbench.model.score import Entry
from solbench.site import text
from solbench.site.cells import Cell, missing, number, ref
from solbench.site.links import Links
from solbench.site.records import Book, Bound, ProblemRecords, Record, TargetRecords

_ROLES = {
    "scored": "counted in the score of every entry",
    "sentinel": "tells whether a target handles a number format, and is in no score",
    "apart": "too large for many machines, and in no score",
}


def corpus_page(book: Book, links: Links) -> dict[str, Any]:
    rows = [problem_row(book, links, problem) for problem in book.problems]
    corpora = [
        {
            "name": corpus,
            "problems": text.plural(sum(row["corpus"] == corpus for row in rows), "problem"),
            "workloads": text.plural(sum(len(p.workloads) for p in book.problems if p.corpus == corpus), "workload"),
        }
        for corpus in sorted({problem.corpus for problem in book.problems})
    ]
    configurations = [_configuration(links, record) for target in book.targets for record in target.configurations]
    roles = {problem.record.value.role for problem in book.problems}
    return {
        "rows": rows,
        "corpora": corpora,
        "configurations": configurations,
        "roles": [(role, meaning) for role, meaning in _ROLES.items() if role in roles],
    }


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


def problem_row(book: Book, links: Links, problem: ProblemRecords) -> dict[str, Any]:
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
        "place": problem.key.rpartition("/")[0],
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
    ends = [known[0], known[-1]] if known[0][0].t_sol_s < known[-1][0].t_sol_s else [known[-1]]
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
