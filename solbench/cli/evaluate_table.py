"""What ``solbench evaluate`` prints of its traces: JSON rows, and a table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solbench.corpus.load import Problem
    from solbench.model.score import Score
    from solbench.model.trace import Trace

_OF_ONE_WORKLOAD = ("profile", "language")


def row(trace: Trace, score: Score, bound: Mapping[str, Any] | None) -> dict[str, Any]:
    """A trace with what follows from it and its bound; ``binds``: launch, memory, compute."""
    return {
        **trace.as_dict(),
        "t_k_s": score.t_k.point_s if score.t_k else None,
        "t_k_interval_s": [score.t_k.low_s, score.t_k.high_s] if score.t_k else None,
        "t_k_coverage": score.t_k.coverage if score.t_k else None,
        "t_b_s": score.t_b.point_s if score.t_b else None,
        "t_sol_s": score.t_sol_s,
        "binds": _binds(score, bound),
        "engine": bound["binds"] if bound is not None and bound["binds"] != "memory" else None,
        "headroom": score.headroom,
        "score": score.s if trace.status == "PASSED" else 0.0 if score.s is not None else None,
        "state": score.state,
        "state_reason": score.reason,
    }


def _binds(score: Score, bound: Mapping[str, Any] | None) -> str | None:
    """What bounds the time: an empty launch takes longer than the bound, or it is the bound's largest term."""
    if bound is None:
        return None
    if score.launch_bound:
        return "launch"
    return "memory" if bound["binds"] == "memory" else "compute"


def table(problem: Problem, solution: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines: a row a workload; its reason and the end of its log where there are any, why sampling stopped, its own
    labels; the count; the labels of all."""
    heads = ("workload", "status", "T_k", "interval", "T_b", "speed-up", "T_SOL", "binds", "headroom", "S")
    cells = [heads]
    notes = []
    labels = rows[0]["labels"] if rows else []
    shared = [label for label in labels if all(label in row["labels"] for row in rows)]
    shared = [label for label in shared if not label.startswith(_OF_ONE_WORKLOAD)]
    for row in rows:
        timed = row["t_k_s"] is not None
        low, high = row["t_k_interval_s"] or (None, None)
        cells.append((
            row["workload"],
            row["status"],
            seconds(row["t_k_s"]),
            f"{seconds(low)} – {seconds(high)} ({row['t_k_coverage']:.0%})" if timed else "-",
            seconds(row["t_b_s"]),
            f"{row['t_b_s'] / row['t_k_s']:.2f}x" if timed else "-",
            seconds(row["t_sol_s"]),
            " ".join(filter(None, (row["binds"], row["engine"] and f"({row['engine']})"))) or "-",
            f"{row['headroom']:.1f}" if row["headroom"] is not None else "-",
            f"{row['score']:.3f}" if row["score"] is not None else "-",
        ))  # fmt: skip
        reason = row["reason"] or (row["state_reason"] if row["state"] != "scored" else None)
        if reason:
            notes.append(f"  {row['workload']}: {reason}")
        if row["reason"] and row["log"]:
            notes += [f"    | {line}" for line in row["log"].strip().splitlines()[-12:]]
        if timed:
            notes.append(f"  {row['workload']}: {row['timing']['stop_reason']}")
        notes += [f"  {row['workload']}: {label}" for label in row["labels"] if label not in shared]
    widths = [max(len(str(row[column])) for row in cells) for column in range(len(heads))]
    lines = [f"{problem.key}  {solution}"]
    lines += ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    passed = sum(row["status"] == "PASSED" for row in rows)
    return [*lines, *notes, f"{passed} of {len(rows)} workloads passed", *(f"  {label}" for label in shared)]


def floor_lines(floors: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What stands beside times that are printed: the time of an empty call, and that no control was run."""
    if not floors:
        return []
    found = ", ".join(f"{seconds(floor['event_s'])} ({kind})" for kind, floor in floors.items())
    return [f"  floor: an empty call takes {found}", "  controls: not run (`solbench measure` does)"]


def seconds(value: float | None) -> str:
    """A time with its unit, or a dash."""
    if value is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
