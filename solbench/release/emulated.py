"""What a release states of candidates on the emulated card: that each verdict is of a solution, a workload and the
checks of the release, and fits itself. That the emulator says so, only another run can show: `solbench verdicts check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solbench.model.emulation import TARGET
from solbench.release import verdicts
from solbench.release.verdicts import Load, Sections


def cross_references(sections: Sections, load: Load) -> Iterator[tuple[str, object, object]]:
    """(name, expected, found) for each entry of the section that is not of where it stands, or contradicts itself."""
    for name, entry in sections["verdicts"].items():
        where = f"verdicts: {name}"
        workload, _, rest = name.rpartition("/")
        solution, _, target = rest.rpartition("@")
        problem, _, uuid = workload.rpartition("/")
        instance = sections["workloads"].get(workload)
        candidate = sections["corpus"].get(f"{problem}/solutions/{solution}")
        if entry.kind != "verdict" or instance is None or candidate is None or target != TARGET:
            yield where, f"the verdict of a solution for a workload of the release on {TARGET}", entry.kind
            continue
        verdict = load("verdicts", entry)
        expected = {
            "problem": problem, "workload": uuid, "solution": solution, "target": target,
            "instance": instance.as_dict(), "candidate": candidate.as_dict(),
        }  # fmt: skip
        wrong = {field: value for field, value in expected.items() if verdict[field] != value}
        for field, value in wrong.items():
            yield f"{where}: {field}", value, verdict[field]
        if not wrong:
            yield from _within(where, verdict, load("workloads", instance))


def _within(
    where: str, verdict: Mapping[str, Any], instance: Mapping[str, Any]
) -> Iterator[tuple[str, object, object]]:
    """Checks, sizes and counts of one verdict."""
    if verdict["correctness"] is not None:
        results = verdict["correctness"]["checks"]
        yield from verdicts.contradictions(where, verdict["status"], results)
        wanted = verdicts.wanted_checks(instance)
        found = [(result["output"], result["type"]) for result in results]
        if found != wanted:
            yield f"{where}: checks", wanted, found
    emulation = verdict["emulation"]
    if emulation is None:
        return
    if emulation["limit"] != verdict["toolchain"]["instructions"]:
        yield f"{where}: emulation.limit", verdict["toolchain"]["instructions"], emulation["limit"]
    for one in emulation["instances"]:
        if one["reduced"] is None and one["axes"] != instance["axes"]:
            yield f"{where}: axes", instance["axes"], one["axes"]
        executed = one["executed"]
        if executed is not None and executed["instructions"] != sum(executed["engines"].values()):
            yield f"{where}: executed", sum(executed["engines"].values()), executed["instructions"]
