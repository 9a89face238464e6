"""What ``solbench evaluate`` prints of verdicts from the emulated card: what ran, and how much more than was needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solbench.cli.evaluate_table import seconds
from solbench.model.emulation import moved_bytes

if TYPE_CHECKING:
    from solbench.corpus.load import Problem


def row(trace: Mapping[str, Any], bound: Mapping[str, Any] | None) -> dict[str, Any]:
    """A trace with what its whole workload executed beside what the bound requires; null where one of them is not
    known. Ratios: bytes loaded over live bytes read, stored over written, matrix operations over the FLOPs."""
    found: dict[str, float | None] = {name: None for name in ("t_sol_s", "read_ratio", "written_ratio", "matrix_ratio")}
    executed = whole(trace)
    if bound is not None:
        memory = bound["memory"]
        found["t_sol_s"] = bound["t_sol_s"]
        if executed is not None:
            found["read_ratio"] = _ratio(moved_bytes(executed["loaded_bytes"]), memory["live_read_bytes"])
            found["written_ratio"] = _ratio(moved_bytes(executed["stored_bytes"]), memory["live_write_bytes"])
            matrix = sum(executed["wmma_operations"].values())
            found["matrix_ratio"] = _ratio(matrix, bound["flops"]) if matrix else None
    return {**trace, **found}


def whole(trace: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a call at the workload's own sizes executed."""
    instances = (trace.get("emulation") or {"instances": ()})["instances"]
    return next((one["executed"] for one in instances if one["reduced"] is None), None)


def table(problem: Problem, solution: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines: a row a workload; why it failed, with findings, and the sizes that ran; the count; labels of all."""
    heads = ("workload", "status", "ran", "calls", "wave-instructions", "loaded", "stored", "matrix", "T_SOL")
    cells: list[tuple[str, ...]] = [heads]
    notes = []
    for one in rows:
        instances = (one.get("emulation") or {"instances": ()})["instances"]
        ended = [instance for instance in instances if instance["ended"] is None]
        executed = whole(one)
        cells.append((
            one["workload"],
            one["status"],
            " and ".join(dict.fromkeys("small" if instance["reduced"] else "whole" for instance in ended)) or "-",
            str(sum(len(instance["calls"]) for instance in ended)),
            f"{executed['instructions']:,}" if executed else "-",
            _moved(executed, "loaded_bytes", one["read_ratio"]),
            _moved(executed, "stored_bytes", one["written_ratio"]),
            _times(one["matrix_ratio"]),
            seconds(one["t_sol_s"]),
        ))  # fmt: skip
        if one["status"] != "PASSED":
            notes.append(f"  {one['workload']}: {one['reason']}")
            notes += [f"    | {line}" for line in one["log"].strip().splitlines()[-12:]]
        notes += [f"  {one['workload']}: {line}" for line in _sizes(instances)]
    widths = [max(len(cell[column]) for cell in cells) for column in range(len(heads))]
    lines = [f"{problem.key}  {solution}"]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row_, widths)).rstrip() for row_ in cells]
    passed = sum(one["status"] == "PASSED" for one in rows)
    shared = rows[0]["labels"] if rows else ()
    return [*lines, *notes, f"{passed} of {len(rows)} workloads passed", *(f"  {label}" for label in shared)]


def _sizes(instances: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the workload itself was not run, or others beside it: at which sizes, and why."""
    lines = []
    for instance in instances:
        if instance["ended"] is not None and instance["reduced"] is None:
            lines.append(f"not run whole: {instance['ended']}")
        elif instance["reduced"] is not None and instance["ended"] is None:
            lines.append(f"{instance['reduced']}: {', '.join(instance['calls'])}")
        lines += [f"warning: {warning}" for warning in instance["warnings"]]
    return lines


def _moved(executed: Mapping[str, Any] | None, what: str, ratio: float | None) -> str:
    if executed is None:
        return "-"
    size = moved_bytes(executed[what])
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)):
        if size >= factor or unit == "B":
            return f"{size / factor:.3g} {unit}" + (f" ({_times(ratio)})" if ratio is not None else "")
    raise AssertionError


def _ratio(executed: int, required: int) -> float | None:
    return executed / required if required else None


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3g}x"
