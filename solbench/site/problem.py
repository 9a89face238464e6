"""The page of one problem: what it asks, each workload's bound, times, scores and verdicts, its solutions and code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from solbench.model.definition import AxisConst, AxisExpr, Definition
from solbench.model.score import Estimate, Score
from solbench.model.solution import Solution
from solbench.model.workload import checked_outputs
from solbench.site import chart, code, roofline, scatter, summary, text, verdict
from solbench.site.cells import SERIES, Cell, bound_cells, estimate, headroom_cell, missing, ref, score_cell
from solbench.site.heads import Head, heads_of, labels_of, untimed
from solbench.site.links import Links, slug
from solbench.site.records import Book, ProblemRecords, Record, TargetRecords, WorkloadRecords


def problem_page(book: Book, links: Links, problem: ProblemRecords) -> dict[str, Any]:
    found = heads_of(links, problem)
    labels = labels_of(found)
    definition = problem.record.value
    results = [_results(book, links, problem, target, found) for target in book.targets]
    made_for = [target for target in book.targets if any(w.on(target.name) for w in problem.workloads)]
    return {
        "name": definition.name,
        "key": problem.key,
        "op_type": definition.op_type,
        "suite": definition.suite or "none",
        "role": definition.role,
        "description": text.paragraphs(definition.description or ""),
        "source": definition.source,
        "ref": ref(links, "definition", problem.record.descriptor),
        "interface": _interface(problem, labels),
        "reference": text.highlighted(definition.reference),
        "heads": list(found.values()),
        "copies": _copies(definition),
        "controls_command": f"solbench corpus validate {problem.key} --controls",
        "targets": [target.name for target in made_for],
        "bounds": [
            {
                "head": found[w.uuid],
                "cells": [cell for target in made_for for cell in bound_cells(links, w, target.name)],
            }
            for w in problem.workloads
        ],
        "results": [result for result in results if result["rows"]],
        "untimed": [result for result in results if not result["rows"]],
        "rooflines": _rooflines(book, problem, labels),
        "solutions": [_solution(links, record) for record in problem.solutions],
        "emulated": _emulated(book, links, problem, found),
        "code": _code(book, links, problem, found),
    }


def _code(book: Book, links: Links, problem: ProblemRecords, heads: dict[str, Head]) -> list[dict[str, Any]]:
    """For each target with code: its tools and a row a record."""
    sections = []
    for target in book.targets:
        records = [record for w in problem.workloads for record in w.code.get(target.name, ())]
        if records:
            rows = [
                {"head": heads[w.uuid], **row}
                for w in problem.workloads
                for row in code.rows(book, links, problem, w, target)
            ]
            sections.append({"target": target.name, "tools": code.tools(records), "rows": rows})
    return sections


def _emulated(book: Book, links: Links, problem: ProblemRecords, heads: dict[str, Head]) -> list[dict[str, Any]]:
    """For each target with verdicts from its emulation: what made them, and a row a record."""
    sections = []
    for target in book.targets:
        records = [record for w in problem.workloads for record in w.verdicts.get(target.name, ())]
        if records:
            rows = [
                {"head": heads[w.uuid], **row}
                for w in problem.workloads
                for row in verdict.rows(links, problem, w, target)
            ]
            sections.append({"target": target.name, "tools": verdict.tools(records), "rows": rows})
    return sections


def _solution(links: Links, record: Record[Solution]) -> dict[str, Any]:
    solution = record.value
    return {
        "record": record.name,
        "name": solution.name,
        "href": links.page("solution", record.name),
        "languages": text.listed(solution.spec.languages),
        "entry_point": solution.spec.entry_point,
        "author": solution.author,
        "description": " ".join((solution.description or "none given").split()),
        "ref": ref(links, f"solution {solution.name}", record.descriptor),
    }


def _results(
    book: Book, links: Links, problem: ProblemRecords, target: TargetRecords, heads: dict[str, Head]
) -> dict[str, Any]:
    """Times and scores of a problem on a target; solutions that nothing is known of share one row a workload."""
    rows: list[dict[str, Any]] = []
    lines = []
    names = sorted({r.value.solution for w in problem.workloads for r in w.scores.get(target.name, ())})
    series = {name: SERIES[i % len(SERIES)] for i, name in enumerate(names)}
    for workload in problem.workloads:
        scores = workload.scores.get(target.name, ())
        head = heads[workload.uuid]
        bound = bound_cells(links, workload, target.name)
        same = len({(r.value.state, r.value.reason) for r in scores}) == 1
        if same and all(r.value.t_k is None and r.value.s is None for r in scores):
            rows.append(_result_row(book, links, problem, head, bound, scores))
        else:
            rows += [_result_row(book, links, problem, head, bound, [record]) for record in scores]
        lines.append(_time_line(head, workload, target.name, series))
    drawn = [line for line in lines if any(line.lanes)]
    return {
        "target": target.name,
        "href": links.page("target", target.name),
        "state": target.state.state,
        **untimed(target, problem),
        "rows": rows,
        "means": _means(names, rows),
        "measured": any(r.value.t_k is not None for w in problem.workloads for r in w.scores.get(target.name, ())),
        "chart": chart.time_chart(
            f"times-{slug(target.name)}",
            f"Bound, baseline and solutions on {target.name}",
            "One row a workload: the bar is T_SOL, rings are the baseline T_b, filled shapes the solutions' T_k, "
            "each with its interval. Further left is faster. The table above holds the same numbers.",
            drawn,
            [("sol", "T_SOL, the bound"), ("base", "T_b, baseline"), *((series[n], f"T_k, {n}") for n in names)],
        )
        if drawn
        else None,
        "scatter": scatter.problem_scatter(
            problem, target.name, labels_of(heads), series, f"scatter-{slug(target.name)}"
        ),
    }


def _rooflines(book: Book, problem: ProblemRecords, labels: dict[str, str]) -> list[dict[str, Any]]:
    """One a target on which a workload can be drawn; solutions have the shapes that they have in the other charts."""
    found = []
    for target in book.targets:
        names = sorted({r.value.solution for w in problem.workloads for r in w.scores.get(target.name, ())})
        series = {name: SERIES[i % len(SERIES)] for i, name in enumerate(names)}
        plot = roofline.problem_roofline(problem, target.name, labels, series, f"roofline-{slug(target.name)}")
        if plot is not None:
            found.append({"target": target.name, "plot": plot})
    return found


def _means(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean score of each solution over its workloads; rows are told to which solutions they belong, by number."""
    for row in rows:
        row["groups"] = " ".join(str(number) for number, name in enumerate(names) if name in row["solutions"])
    if not any(row["score"].sort for row in rows):
        return []
    own = [[row["score"] for row in rows if name in row["solutions"]] for name in names]
    return [
        {"solution": name, "group": str(number), "mean": summary.mean(cells)}
        for number, (name, cells) in enumerate(zip(names, own))
    ]


def _result_row(
    book: Book,
    links: Links,
    problem: ProblemRecords,
    head: Head,
    bound: tuple[Cell, Cell],
    scores: Sequence[Record[Score]],
) -> dict[str, Any]:
    """One score, or several that say the same: then the first says it, and the others only stand for their records."""
    first = scores[0].value
    trace = None if first.trace is None else book.traces.get(first.trace.digest)
    source = trace.descriptor if trace is not None else scores[0].descriptor
    return {
        "head": head,
        "solution": text.listed(record.value.solution for record in scores),
        "solutions": [record.value.solution for record in scores],
        "trust": first.trust or "",
        "href": links.page("solution", f"{problem.key}/solutions/{first.solution}") if len(scores) == 1 else "",
        "bound": replace(bound[0], record=""),
        "binds": bound[1].text,
        "times": [estimate(links, t, source) if t is not None else missing("—") for t in (first.t_b, first.t_k)],
        "headroom": headroom_cell(links, scores[0]),
        "score": score_cell(links, scores[0]),
        "others": [record.name for record in scores[1:]],
    }


def _time_line(head: Head, workload: WorkloadRecords, target: str, series: dict[str, str]) -> chart.Line:
    def point(kind: str, words: str, value: Estimate) -> chart.Point:
        interval = text.span(value.low_s, value.high_s, "s", value.point_s)
        title = f"{words} {text.quantity(value.point_s, 's')}, interval {interval}"
        return chart.Point(kind, value.point_s, title, value.low_s, value.high_s)

    lanes = []
    for record in workload.scores.get(target, ()):
        score = record.value
        lane = []
        if score.t_b is not None:
            lane.append(point("base", f"baseline beside {score.solution}:", score.t_b))
        if score.t_k is not None:
            lane.append(point(series[score.solution], f"{score.solution}:", score.t_k))
        if lane:
            lanes.append(tuple(lane))
    bound = workload.bounds.get(target)
    across = None
    if bound is not None and bound.value.result is not None:
        value = bound.value.result.t_sol_s
        across = chart.Point("sol", value, f"T_SOL {text.quantity(value, 's')}")
    return chart.Line(head.label, head.shape, across, tuple(lanes))


def _copies(definition: Definition) -> list[str]:
    """Inputs of the type and shape of an output: a copy of one must not pass for it."""
    outputs = [(spec.dtype, spec.shape) for spec in definition.outputs.values() if spec.shape is not None]
    return [name for name, spec in definition.inputs.items() if (spec.dtype, spec.shape) in outputs]


def _interface(problem: ProblemRecords, labels: dict[str, str]) -> dict[str, Any]:
    """Axes, inputs with generators, outputs with checks; what differs between workloads says for which."""
    definition = problem.record.value
    workloads = [(labels[workload.uuid], workload.record.value) for workload in problem.workloads]
    axes = []
    for name, axis in definition.axes.items():
        if isinstance(axis, AxisConst):
            size = text.grouped(axis.value)
        elif isinstance(axis, AxisExpr):
            size = f"= {axis.expression}"
        else:
            size = "set by the workload"
        axes.append({"name": name, "size": size, "description": axis.description or ""})
    inputs = [
        {
            "name": name,
            "dtype": spec.dtype,
            "shape": text.tensor_shape(spec.shape),
            "role": spec.role or "none",
            "description": spec.description or "",
            "flags": [word for word, group in _flags(definition) if name in group],
            "generators": _by_workload([(label, [text.generator(w.inputs[name])]) for label, w in workloads]),
        }
        for name, spec in definition.inputs.items()
    ]
    outputs = [
        {
            "name": name,
            "dtype": spec.dtype,
            "shape": text.tensor_shape(spec.shape),
            "description": spec.description or "",
            "checks": _by_workload(
                [(label, [text.check(c) for c in w.checks if name in checked_outputs(c)]) for label, w in workloads]
            ),
        }
        for name, spec in definition.outputs.items()
    ]
    return {
        "axes": axes,
        "meanings": any(axis["description"] for axis in axes),
        "inputs": inputs,
        "outputs": outputs,
        "stress": _by_workload([(label, [_stress(r) for r in w.stress_rounds]) for label, w in workloads]),
        "rejected": _by_workload(
            [(label, [text.listed(w.rejected_formats)] if w.rejected_formats else []) for label, w in workloads]
        ),
    }


def _flags(definition: Definition) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("written in place", definition.in_place), ("kept between calls", definition.persistent)


def _stress(stress: Any) -> str:
    drawn = (f"{name} {text.generator(generator)}" for name, generator in stress.inputs.items())
    return f"{stress.label}: {text.listed(drawn)}"


def _by_workload(described: Sequence[tuple[str, list[str]]]) -> list[dict[str, str]]:
    """From (workload, descriptions): each description once, with the workloads it holds for ("" for all of them)."""
    found: dict[str, list[str]] = {}
    for label, descriptions in described:
        for words in descriptions:
            found.setdefault(words, []).append(label)
    return [
        {"words": words, "workloads": "" if len(which) == len(described) else text.listed(which)}
        for words, which in found.items()
    ]
