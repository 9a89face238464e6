"""Every workload by every extraction path: what was recorded, converted, attested and bound, and whether paths agree.

The two paths are two witnesses of one reference. Where both give a bound, T_SOL, multiply-adds and live bytes have to
be equal; a difference stands in the report with its cause, or is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.corpus.load import Problem
from solbench.jobs import CONVERSION, code_of, mapped

SCHEMA = "solbench.corpus-report.v1"
STEPS = ("recorded", "converted", "attested", "bound")
# What two paths have to agree in.
COMPARED = ("t_sol_s", "macs", "live_bytes")
# Differences that are understood, by problem: why the two bounds are both right.
CAUSES: Mapping[str, str] = {}
_CODE = (*CONVERSION, "solar/bound", "solar/hardware.py", "solbench/corpus/report.py")


@dataclass(frozen=True)
class Report:
    """``rows``: one a workload (see :func:`report`); ``computed``: how many path results were not in the memo."""

    target: str
    paths: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    computed: int

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Rows that the first path gives no bound for, and rows whose paths differ without a cause."""
        return [row for row in self.rows if row["paths"][self.paths[0]]["bound"] is None or not _explained(row)]

    def totals(self) -> dict[str, Any]:
        """Counts: per path and step, and of workloads whose paths agree, all out of ``workloads``."""
        counts: dict[str, Any] = {
            path: {step: sum(bool(row["paths"][path][step]) for row in self.rows) for step in STEPS}
            for path in self.paths
        }
        for path in self.paths:
            bounds = [row["paths"][path]["bound"] for row in self.rows]
            counts[path]["complete"] = sum(value is not None and value["coverage"] == "complete" for value in bounds)
        agreed = sum(not row["disagreement"] for row in self.rows)
        return {"workloads": len(self.rows), "paths": counts, "agree": agreed, "failures": len(self.failures)}

    def as_dict(self) -> dict[str, Any]:
        """The report as one plain JSON value."""
        return {
            "schema": SCHEMA,
            "target": self.target,
            "paths": list(self.paths),
            "totals": self.totals(),
            "workloads": list(self.rows),
        }


def report(
    problems: Sequence[Problem],
    target: str,
    paths: Sequence[str],
    memo_root: Path,
    *,
    causes: Mapping[str, str] = CAUSES,
    workers: int | None = None,
) -> Report:
    """Examine every workload of ``problems`` on ``target`` by every one of ``paths``; the first has to bound all.

    A row: ``problem``, ``workload``, ``paths`` (by path :func:`examined`), ``disagreement`` (what differs, or null) and
    its ``cause``: the reason why a path records nothing, or what ``causes`` says of the problem; null without one.
    """
    from solbench.bounds import machine_for
    from solbench.evaluate.identity import workload_artifact

    machine = machine_for(target).to_dict()
    jobs = []
    for problem in problems:
        definition = problem.definition.as_dict()
        for workload in problem.workloads:
            instance = workload_artifact(problem, workload)
            jobs += [(instance, {**definition, "path": path}, machine) for path in paths]
    results, computed = mapped(memo_root, "corpus report", code_of(_CODE), examined, jobs, workers=workers)
    rows = []
    for first in range(0, len(jobs), len(paths)):
        instance = jobs[first][0]
        found = dict(zip(paths, results[first : first + len(paths)], strict=True))
        difference, cause = compared(found)
        rows.append(
            {
                "problem": instance["problem"],
                "workload": instance["workload"]["uuid"],
                "paths": found,
                "disagreement": difference,
                "cause": (cause or causes.get(instance["problem"])) if difference else None,
            }
        )
    return Report(machine["name"], tuple(paths), tuple(rows), computed)


def examined(instance: Mapping[str, Any], definition: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """One workload by one path: the steps as booleans, ``bound`` (its leading numbers) or null, ``reason`` or null.

    ``instance``: the ``workload`` artifact; ``definition`` carries ``path``; ``machine``: of a machine model.
    """
    from solar.bound import bound
    from solar.convert import convert
    from solar.einsum import from_dict
    from solar.errors import SolarError
    from solar.graph import from_dict as graph_from_dict
    from solar.hardware import Machine
    from solbench.bounds import convert_and_attest, record_graph

    steps: dict[str, Any] = {step: False for step in STEPS} | {"bound": None, "reason": None}
    recorded = record_graph(instance, definition)
    if recorded["graph"] is None:
        return steps | {"reason": recorded["reason"]}
    steps["recorded"] = True
    fields = {name: value for name, value in definition.items() if name != "path"}
    converted = convert_and_attest(instance, {**fields, "graph": recorded["graph"]})
    try:
        if converted["program"] is None:
            # Which of the two it was: what converts has failed its replay.
            convert(graph_from_dict(recorded["graph"]))
            return steps | {"converted": True, "reason": converted["reason"]}
        steps |= {"converted": True, "attested": True}
        rejected = tuple(instance["workload"]["rejected_formats"])
        result = bound(from_dict(converted["program"]), Machine.from_dict(machine), rejected_formats=rejected)
    except SolarError as error:
        return steps | {"reason": str(error)}
    return steps | {
        "bound": {
            "t_sol_s": result["t_sol_s"],
            "binds": result["binds"],
            "macs": result["macs"],
            "live_bytes": result["memory"]["live_bytes"],
            "coverage": result["coverage"],
            "uncounted": result["uncounted"],
        }
    }


def compared(found: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, str | None]:
    """Where the paths of one workload differ, and the cause as far as they say it themselves; null for nothing."""
    without = [path for path, result in found.items() if result["bound"] is None]
    if without:
        if len(without) == len(found):
            return None, None
        cause = [found[path]["reason"] for path in without if not found[path]["recorded"]]
        return f"no bound by {', '.join(without)}", cause[0] if len(cause) == len(without) else None
    first, *others = found
    for other in others:
        for name in COMPARED:
            values = [found[path]["bound"][name] for path in (first, other)]
            if values[0] != values[1]:
                return f"{name}: {values[0]!r} by {first}, {values[1]!r} by {other}", None
    return None, None


def _explained(row: Mapping[str, Any]) -> bool:
    return row["disagreement"] is None or row["cause"] is not None
