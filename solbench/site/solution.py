"""The page of one solution: its sources, how it is built, its results over the workloads, its emulation and code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solbench.model.solution import Solution
from solbench.site import code, text, verdict
from solbench.site.cells import bound_cells, estimate, missing, ref, score_cell
from solbench.site.heads import heads_of, untimed
from solbench.site.links import Links
from solbench.site.records import Book, ProblemRecords, Record, TargetRecords


def solution_page(book: Book, links: Links, problem: ProblemRecords, record: Record[Solution]) -> dict[str, Any]:
    solution = record.value
    spec = solution.spec
    build = [
        ("languages", text.listed(spec.languages)),
        ("entry point", spec.entry_point),
        ("hardware named", text.listed(spec.target_hardware) or "none"),
        ("destination passing", "yes" if spec.destination_passing_style else "no"),
        ("binding", spec.binding or "chosen by language"),
        ("needs", text.listed(spec.dependencies) or "nothing more"),
        *((name.replace("_", " "), " ".join(flags)) for name, flags in spec.compile_options if flags),
    ]
    results = [_results(book, links, problem, solution.name, target) for target in book.targets]
    return {
        "name": solution.name,
        "problem": problem.record.value.name,
        "key": problem.key,
        "problem_href": links.page("problem", problem.key, "solutions"),
        "author": solution.author,
        "description": text.paragraphs(solution.description or ""),
        "build": build,
        "ref": ref(links, f"solution {solution.name}", record.descriptor),
        "sources": [
            {
                "path": source.path,
                "lines": text.plural(len(source.content.splitlines()), "line"),
                "tokens": text.highlighted(source.content, source.path),
            }
            for source in solution.sources
        ],
        "results": [result for result in results if result["rows"]],
        "untimed": [result for result in results if not result["rows"]],
        "emulated": _emulated(book, links, problem, solution.name),
        "code": _code(book, links, problem, solution.name),
    }


def _results(book: Book, links: Links, problem: ProblemRecords, name: str, target: TargetRecords) -> dict[str, Any]:
    """Its score on each workload of one target."""
    heads = heads_of(links, problem)
    rows = []
    for workload in problem.workloads:
        for record in workload.scores.get(target.name, ()):
            score = record.value
            if score.solution != name:
                continue
            trace = None if score.trace is None else book.traces.get(score.trace.digest)
            source = record.descriptor if trace is None else trace.descriptor
            times = [missing("—") if t is None else estimate(links, t, source) for t in (score.t_b, score.t_k)]
            rows.append(
                {
                    "head": heads[workload.uuid],
                    "bound": replace(bound_cells(links, workload, target.name)[0], record=""),
                    "times": times,
                    "score": replace(score_cell(links, record), record=""),
                }
            )
    return {
        "target": target.name,
        "href": links.page("target", target.name),
        **untimed(target, problem),
        "rows": rows,
    }


def _emulated(book: Book, links: Links, problem: ProblemRecords, name: str) -> list[dict[str, Any]]:
    """Its verdicts on each target whose card was emulated."""
    heads = heads_of(links, problem)
    sections = []
    for target in book.targets:
        rows = [
            {"head": heads[workload.uuid], **row}
            for workload in problem.workloads
            for row in verdict.rows(links, problem, workload, target)
            if row["solution"] == name
        ]
        if rows:
            records = [
                record
                for w in problem.workloads
                for record in w.verdicts.get(target.name, ())
                if record.value.solution == name
            ]
            sections.append({"target": target.name, "tools": verdict.tools(records), "rows": rows})
    return sections


def _code(book: Book, links: Links, problem: ProblemRecords, name: str) -> list[dict[str, Any]]:
    """What it becomes on each target for which there is code."""
    heads = heads_of(links, problem)
    sections = []
    for target in book.targets:
        rows = [
            {"head": heads[workload.uuid], **row}
            for workload in problem.workloads
            for row in code.rows(book, links, problem, workload, target)
            if row["solution"] == name
        ]
        if rows:
            records = [
                record
                for w in problem.workloads
                for record in w.code.get(target.name, ())
                if record.value.solution == name
            ]
            sections.append({"target": target.name, "tools": code.tools(records), "rows": rows})
    return sections
