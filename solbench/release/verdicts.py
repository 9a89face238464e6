"""What a release's traces say of their own checks: that verdict, results and the workload's checks belong together.

The counts themselves are observations of whoever measured; only another run can repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from solbench.model.trace import Status
from solbench.model.workload import Workload, checked_outputs
from solbench.store import Descriptor

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]


def cross_references(sections: Sections, load: Load) -> Iterator[tuple[str, object, object]]:
    """(name, expected, found) for each trace that contradicts itself or the checks of its workload.

    A trace of another version of its workload is stale, and judged by itself alone.
    """
    workloads = {entry.digest: entry for entry in sections["workloads"].values() if entry.kind == "workload"}
    wanted: dict[str, list[tuple[str, str]]] = {}
    for name, entry in sections["timings"].items():
        if entry.kind != "trace":
            continue
        trace = load("timings", entry)
        if trace["correctness"] is None:
            continue
        where = f"timings: {name}"
        results = trace["correctness"]["checks"]
        yield from contradictions(where, trace["status"], results)
        digest = trace["workload_digest"]
        instance = workloads.get(digest)
        if instance is None:
            continue
        if digest not in wanted:
            wanted[digest] = wanted_checks(load("workloads", instance))
        found = [(result["output"], result["type"]) for result in results]
        if found != wanted[digest]:
            yield f"{where}: checks", wanted[digest], found


def contradictions(
    where: str, status: str, results: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, object, object]]:
    """(name, expected, found) where the results of checks contradict themselves or the verdict."""
    results = list(results)
    if status == Status.INCORRECT_NUMERICAL and all(result["passed"] for result in results):
        yield f"{where}: status", "a check that failed", status
    for result in results:
        output, compared, mismatched = result["output"], result["compared"], result["mismatched"]
        if mismatched > compared or (result["passed"] and not compared):
            counts = f"{mismatched} of {compared}"
            yield f"{where}: {output}", "elements compared, and no more that differ", counts
        if result["passed"] and result["type"] == "exact" and mismatched:
            yield f"{where}: {output}", "no element that differs", mismatched


def wanted_checks(instance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(output, type) of each check of a ``workload`` artifact."""
    workload = Workload.load(instance["workload"], "workload")
    return [(output, check.type) for check in workload.checks for output in checked_outputs(check)]
