"""The page of one workload: each bound term by term, each time with its witnesses, what it is made of, every object."""

from __future__ import annotations

from typing import Any

from solbench.model.definition import TensorSpec, resolve_shape
from solbench.model.workload import checked_outputs
from solbench.site import code, text
from solbench.site.bound import explained
from solbench.site.cells import SERIES, ref
from solbench.site.heads import Head, heads_of
from solbench.site.links import Links, slug
from solbench.site.records import Book, ProblemRecords, TargetRecords, WorkloadRecords
from solbench.site.timing import timed


def workload_page(book: Book, links: Links, problem: ProblemRecords, workload: WorkloadRecords) -> dict[str, Any]:
    heads = heads_of(links, problem)
    order = list(heads.values())
    place = [head.uuid for head in order].index(workload.uuid)
    targets = [_target(book, links, problem, workload, target) for target in book.targets]
    shown = [target for target in targets if target["bound"] or target["results"] or target["code"]]
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
        "without": [target["name"] for target in targets if target not in shown],
        "attestation": _attestation(links, workload),
        "objects": _objects(links, order[place], workload, shown),
    }


def _target(
    book: Book, links: Links, problem: ProblemRecords, workload: WorkloadRecords, target: TargetRecords
) -> dict[str, Any]:
    """What one target has for this workload: a bound, times, code."""
    bound = workload.bounds.get(target.name)
    records = workload.code.get(target.name, ())
    return {
        "name": target.name,
        "href": links.page("target", target.name),
        "bound": None if bound is None else explained(links, target, bound),
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
        "tools": code.tools(records),
        "code": code.rows(book, links, problem, workload, target),
        "kernels": code.kernels(book, links, workload, target),
    }


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


def _attestation(links: Links, workload: WorkloadRecords) -> dict[str, Any] | None:
    if workload.attestation is None:
        return None
    predicate = workload.attestation.value.get("predicate")
    value = dict(predicate) if isinstance(predicate, dict) else {}
    return {
        "ref": ref(links, "attestation", workload.attestation.descriptor),
        "verdict": str(value.pop("verdict", "without a verdict")),
        "facts": text.flat(value),
    }


def _objects(links: Links, head: Head, workload: WorkloadRecords, targets: list[dict[str, Any]]) -> list[Any]:
    """Every object that the page draws from, in the order in which they come about."""
    found = [head.ref, *(ref(links, label, descriptor) for label, descriptor in workload.evidence)]
    for target in targets:
        found += [target["bound"]["ref"]] if target["bound"] else []
        for result in target["results"]:
            found += result["objects"]
        found += [row["ref"] for row in target["code"]]
        for kernel in target["kernels"]:
            found += kernel["objects"]
    return found
