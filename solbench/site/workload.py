"""The page of one workload: each bound term by term, each time with its witnesses, what it is made of, every object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from solar.errors import GraphError
from solar.graph import from_dict
from solbench.errors import IntegrityError
from solbench.model.definition import TensorSpec, resolve_shape
from solbench.model.trace import Status
from solbench.model.workload import checked_outputs
from solbench.site import attestation, calls, code, text, verdict
from solbench.site.bound import explained
from solbench.site.cells import SERIES, bound_cells, missing, ref
from solbench.site.drawing import draw
from solbench.site.folding import fold
from solbench.site.heads import Head, heads_of
from solbench.site.ir import listing
from solbench.site.links import Links, slug
from solbench.site.records import Book, Bound, ProblemRecords, Record, TargetRecords, WorkloadRecords
from solbench.site.timing import timed
from solbench.store import without_kind

# A larger graph (a loop of some thousand operations, unrolled) is not laid out on a page: its object holds it.
MOST_BYTES: Final = 1 << 18
_CALLED: Final = {"operator-graph": "operator graph", "einsum-graph": "einsum IR"}


def workload_page(book: Book, links: Links, problem: ProblemRecords, workload: WorkloadRecords) -> dict[str, Any]:
    heads = heads_of(links, problem)
    order = list(heads.values())
    place = [head.uuid for head in order].index(workload.uuid)
    above: dict[str, Record[Bound]] = {}
    targets = []
    for target in book.targets:
        targets.append(_target(book, links, problem, workload, target, above))
        if target.name in workload.bounds:
            above[target.name] = workload.bounds[target.name]
    shown = [target for target in targets if any(target[part] for part in ("bound", "results", "code", "verdicts"))]
    return {
        "head": order[place],
        "problem": problem.record.value.name,
        "key": problem.key,
        "problem_href": links.page("problem", problem.key, order[place].anchor),
        "before": order[place - 1] if place else None,
        "after": order[place + 1] if place + 1 < len(order) else None,
        "place": f"{place + 1} of {len(order)}",
        "axes": [(name, text.grouped(size)) for name, size in workload.axes.items()],
        "slots": [f"{slot} on {target}" for target, slot in workload.slots.items()],
        "inputs": _inputs(problem, workload),
        "outputs": _outputs(problem, workload),
        "targets": shown,
        "short": [row for number, target in enumerate(shown, 1) for row in _short(number, target, workload, links)],
        "without": [target["name"] for target in targets if target not in shown],
        **_made_of(links, workload),
        "drawn_on": next((heads[w.uuid] for w in problem.workloads if _is_small(w)), None),
        "attestation": _attestation(links, workload),
        "objects": _objects(links, order[place], workload, shown),
    }


def _target(
    book: Book,
    links: Links,
    problem: ProblemRecords,
    workload: WorkloadRecords,
    target: TargetRecords,
    above: dict[str, Record[Bound]],
) -> dict[str, Any]:
    """What one target has for this workload: a bound, times, verdicts from its emulation, code."""
    bound = workload.bounds.get(target.name)
    records = workload.code.get(target.name, ())
    return {
        "name": target.name,
        "href": links.page("target", target.name),
        "bound": None if bound is None else explained(links, target, bound, above),
        "results": [
            timed(
                book,
                links,
                record,
                links.page("solution", f"{problem.key}/solutions/{record.value.solution}"),
                f"{slug(target.name)}-{number}",
                SERIES[number % len(SERIES)],
            )
            for number, record in enumerate(workload.scores.get(target.name, ()))
        ],
        "sentence": text.sentence(target.state.note),
        "verdicts": verdict.rows(links, problem, workload, target),
        "emulated_by": verdict.tools(workload.verdicts.get(target.name, ())),
        "tools": code.tools(records),
        "code": code.rows(book, links, problem, workload, target),
        "kernels": code.kernels(book, links, workload, target),
    }


def _short(number: int, target: dict[str, Any], workload: WorkloadRecords, links: Links) -> list[dict[str, Any]]:
    """The lines of one target in the table at the top: one a result, or one that says that there is none."""
    bound, binds = bound_cells(links, workload, target["name"])
    line = {"number": number, "target": target["name"], "bound": replace(bound, record=""), "binds": binds.text}
    results = [
        {
            **line,
            "solution": result["solution"],
            "anchor": f"time-{number}-{place}",
            "cells": [
                replace(result["t_b"], note=""),
                replace(result["t_k"], note=""),
                replace(result["score"], record=""),
            ],
        }
        for place, result in enumerate(target["results"], 1)
    ]
    verdicts = [row["status"] for row in target["verdicts"]]
    emulated = f"emulated: {verdicts.count(Status.PASSED)} of {len(verdicts)} passed" if verdicts else ""
    none = [missing("—"), missing("—"), missing("not timed", "not_timed", note=emulated)]
    return results or [{**line, "solution": "—", "anchor": "", "cells": none}]


def _shape(spec: TensorSpec, workload: WorkloadRecords) -> str:
    if spec.shape is None:
        return "scalar"
    return "[" + ", ".join(map(text.grouped, resolve_shape(spec, dict(workload.axes)))) + "]"


def _inputs(problem: ProblemRecords, workload: WorkloadRecords) -> list[dict[str, str]]:
    definition, value = problem.record.value, workload.record.value
    return [
        {
            "name": name,
            "dtype": spec.dtype,
            "shape": _shape(spec, workload),
            "from": text.generator(value.inputs[name]),
        }
        for name, spec in definition.inputs.items()
    ]


def _outputs(problem: ProblemRecords, workload: WorkloadRecords) -> list[dict[str, Any]]:
    definition, value = problem.record.value, workload.record.value
    return [
        {
            "name": name,
            "dtype": spec.dtype,
            "shape": _shape(spec, workload),
            "checks": [text.check(check) for check in value.checks if name in checked_outputs(check)],
        }
        for name, spec in definition.outputs.items()
    ]


def _is_small(workload: WorkloadRecords) -> bool:
    """Whether its operator graph is there, and is drawn."""
    return any(one.kind == "operator-graph" and one.size <= MOST_BYTES for _, one in workload.evidence)


def _made_of(links: Links, workload: WorkloadRecords) -> dict[str, Any]:
    """The operator graph as a drawing and as a table, and the einsum IR as text.

    None for what the release lacks, or has in an object of more than :data:`MOST_BYTES`.
    """
    evidence = {descriptor.kind: descriptor for _, descriptor in workload.evidence}
    found: dict[str, Any] = {"drawing": None, "operations": None, "graph_ref": None, "ir": None, "ir_ref": None}
    for kind, name in (("operator-graph", "graph_ref"), ("einsum-graph", "ir_ref")):
        if kind in evidence:
            found[name] = ref(links, _CALLED[kind], evidence[kind])
    evidence = {kind: descriptor for kind, descriptor in evidence.items() if descriptor.size <= MOST_BYTES}
    try:
        if "operator-graph" in evidence:
            graph = from_dict(without_kind(links.objects.load(evidence["operator-graph"])))
            folded = fold(graph)
            found["drawing"] = draw(graph, "graph", workload.uuid, folded)
            found["operations"] = calls.rows(graph, folded)
        if "einsum-graph" in evidence:
            found["ir"] = listing(links.objects.load(evidence["einsum-graph"]))
    except GraphError as error:
        raise IntegrityError(f"{workload.record.name}: {error}") from None
    return found


def _attestation(links: Links, workload: WorkloadRecords) -> dict[str, Any] | None:
    if workload.attestation is None:
        return None
    predicate = workload.attestation.value.get("predicate")
    value = dict(predicate) if isinstance(predicate, dict) else {}
    return {
        "ref": ref(links, "attestation", workload.attestation.descriptor),
        "verdict": str(value.pop("verdict", "without a verdict")),
        "facts": attestation.facts(value),
    }


def _objects(
    links: Links, head: Head, workload: WorkloadRecords, targets: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Every object that the page draws from, in the order in which they come about, and what it belongs to."""
    found = [("", head.ref), *(("", ref(links, label, descriptor)) for label, descriptor in workload.evidence)]
    for target in targets:
        found += [("", target["bound"]["ref"])] if target["bound"] else []
        for result in target["results"]:
            found += [(f"{target['name']}, ", one) for one in result["objects"]]
        found += [(f"{target['name']}, ", row["ref"]) for row in (*target["verdicts"], *target["code"])]
        for kernel in target["kernels"]:
            found += [(f"{target['name']}, kernel {kernel['number']}, ", one) for one in kernel["objects"]]
    return [{"where": where, "ref": one} for where, one in found]
