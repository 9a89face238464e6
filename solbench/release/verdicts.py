"""What a release's traces say of their own checks: that verdict, results and the workload's checks belong together.

The counts themselves are observations of whoever measured; only another run can repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
        if trace["status"] == Status.INCORRECT_NUMERICAL and all(result["passed"] for result in results):
            yield f"{where}: status", "a check that failed", trace["status"]
        for result in results:
            output, compared, mismatched = result["output"], result["compared"], result["mismatched"]
            if mismatched > compared or (result["passed"] and not compared):
                counts = f"{mismatched} of {compared}"
                yield f"{where}: {output}", "elements compared, and no more that differ", counts
            if result["passed"] and result["type"] == "exact" and mismatched:
                yield f"{where}: {output}", "no element that differs", mismatched
        digest = trace["workload_digest"]
        instance = workloads.get(digest)
        if instance is None:
            continue
        if digest not in wanted:
            workload = Workload.load(load("workloads", instance)["workload"], digest)
            wanted[digest] = [(output, check.type) for check in workload.checks for output in checked_outputs(check)]
        found = [(result["output"], result["type"]) for result in results]
        if found != wanted[digest]:
            yield f"{where}: checks", wanted[digest], found
