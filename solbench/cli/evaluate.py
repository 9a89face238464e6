"""``solbench evaluate``: is this solution right, and how fast is it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solbench.errors import InputError

if TYPE_CHECKING:
    from solbench.corpus.load import Problem
    from solbench.model.score import Score
    from solbench.model.trace import Trace
    from solbench.model.workload import Workload


@click.command()
@click.argument("problem")
@click.option("--solution", type=click.Path(path_type=Path), required=True, help="A .py, .cpp or solution.yaml.")
@click.option(
    "--target", default="cpu", show_default=True, help="cpu, or the architecture of a card here: gfx1200, sm_90."
)
@click.option("--workload", "uuids", multiple=True, metavar="ID", help="Only this workload; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the list of traces instead of the table.")
@click.option("--trace-output", type=click.Path(path_type=Path), metavar="FILE", help="Also write traces, as JSONL.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=30.0, show_default=True,
    help="Seconds a call; four times that for the first, which may compile.",
)  # fmt: skip
@click.option(
    "--compile-timeout", type=click.FloatRange(min=0.1), default=120.0, show_default=True,
    help="Seconds to build, and to load.",
)  # fmt: skip
@click.option("--replicates", type=click.IntRange(1, 100), default=1, show_default=True, help="Processes a side.")
@click.option("--samples", type=click.IntRange(1, 1000), default=6, show_default=True, help="Samples a process.")
@click.option("--unsandboxed", is_flag=True, help="Without namespaces and Landlock, for code you trust; traces say so.")
@click.option("--uuid", help="The card, on a GPU target.  [default: $GPU_LOCK_UUID, else the only card]")
@click.option("--lock-dir", type=click.Path(path_type=Path), help="Folder of card locks.  [default: $GPU_LOCK_DIR]")
@click.option("--root", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Corpora.")
def evaluate(
    problem: str,
    solution: Path,
    target: str,
    uuids: tuple[str, ...],
    as_json: bool,
    trace_output: Path | None,
    timeout: float,
    compile_timeout: float,
    replicates: int,
    samples: int,
    unsandboxed: bool,
    uuid: str | None,
    lock_dir: Path | None,
    root: Path,
) -> int:
    """Check and time a solution of PROBLEM: a key (AMD_AKA/torch2hip/l1n23_softmax), its last part, or a folder.

    A .py file defines run(inputs...) and returns the outputs. A .cpp file defines extern "C" void run(...): one
    argument an input in declared order (a tensor by const pointer, a scalar by value), one pointer an output, then
    every axis of the problem as int64_t. bfloat16 and float16 are passed as uint16_t, float8 as uint8_t.

    Every sample draws fresh inputs and is checked. The table shows T_k, the time of the solution with its interval,
    T_b, the eager PyTorch baseline sampled in turn with it, T_SOL, the bound, and S, 0.5 at T_b and 1 at T_SOL.

    Exit code: 0 all workloads passed, 1 one did not, 2 bad input, 3 no sandbox can be had, 4 the target is not here.
    """
    from solbench.cli import printable
    from solbench.corpus.load import find_problems, load_solution
    from solbench.evaluate.evaluation import evaluate as run
    from solbench.evaluate.evaluation import protocol
    from solbench.evaluate.sampling import Limits
    from solbench.evaluate.session import Session

    (found,) = find_problems(root, [problem])
    candidate = load_solution(solution, found.definition)
    chosen = _choose(found, uuids)
    limits = Limits(compile_s=compile_timeout, load_s=compile_timeout, first_call_s=4 * timeout, call_s=timeout)
    say: Callable[[str], None] = lambda text: click.echo(f"  {printable(text)}", err=True)  # noqa: E731
    traces: list[Trace] = []
    with Session(limits, target=target, unsandboxed=unsandboxed, uuid=uuid, lock_dir=lock_dir) as session:
        counts = protocol("quick", processes=replicates, samples=samples)
        traces += run(found, candidate, workloads=chosen, target=target, protocol=counts, session=session, progress=say)
        timed = any(trace.timing is not None for trace in traces)
        floors = session.floors() if timed else {}
    floor_s = min((floor["event_s"] for floor in floors.values()), default=0.0)
    scores = _scores(found, chosen, traces, floor_s, target, say)
    rows = [_row(trace, score) for trace, score in zip(traces, scores)]
    if trace_output is not None:
        trace_output.write_text("".join(json.dumps(trace.as_dict()) + "\n" for trace in traces), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        for line in [*_table(found, candidate.name, rows), *_floors(floors)]:
            click.echo(printable(line))
    return 0 if all(row["status"] == "PASSED" for row in rows) else 1


def _choose(problem: Problem, uuids: Iterable[str]) -> tuple[Workload, ...]:
    known = {workload.uuid: workload for workload in problem.workloads}
    for uuid in uuids:
        if uuid not in known:
            raise InputError(f"--workload {uuid}", f"no such workload; {problem.key} has {', '.join(known)}")
    return tuple(known[uuid] for uuid in dict.fromkeys(uuids)) or problem.workloads


def _scores(
    problem: Problem, workloads: Iterable[Workload], traces: list[Trace], floor_s: float, target: str,
    say: Callable[[str], None],
) -> list[Score]:  # fmt: skip
    """Score of every trace; a bound that cannot be had is a reason, not an end."""
    from solbench.bounds import bounds_for, machine_here
    from solbench.errors import SolbenchError
    from solbench.score import score_workload

    machine, reason = None, "no machine model"
    try:
        machine = machine_here(target)
    except (SolbenchError, OSError) as error:
        reason = f"no machine model: {error}"
    by_uuid = {workload.uuid: workload for workload in workloads}
    scores = []
    for trace in traces:
        bound: dict[str, Any] | str = reason
        if machine is not None and trace.timing is not None:
            say(f"{trace.workload}: bound")
            bound = bounds_for(problem, by_uuid[trace.workload], machine)
        known = bound if isinstance(bound, dict) else None
        text = bound if isinstance(bound, str) else "no bound"
        scores.append(score_workload(trace, known, floor_s, no_bound=text))
    return scores


def _row(trace: Trace, score: Score) -> dict[str, Any]:
    return {
        **trace.as_dict(),
        "t_k_s": score.t_k.point_s if score.t_k else None,
        "t_k_interval_s": [score.t_k.low_s, score.t_k.high_s] if score.t_k else None,
        "t_k_coverage": score.t_k.coverage if score.t_k else None,
        "t_b_s": score.t_b.point_s if score.t_b else None,
        "t_sol_s": score.t_sol_s,
        "headroom": score.headroom,
        "score": score.s if trace.status == "PASSED" else 0.0 if score.s is not None else None,
        "state": score.state,
        "state_reason": score.reason,
    }


def _table(problem: Problem, solution: str, rows: list[dict[str, Any]]) -> list[str]:
    heads = ("workload", "status", "T_k", "interval", "T_b", "speed-up", "T_SOL", "headroom", "S")
    cells = [heads]
    notes = []
    for row in rows:
        timed = row["t_k_s"] is not None
        low, high = row["t_k_interval_s"] or (None, None)
        cells.append((
            row["workload"],
            row["status"],
            _time(row["t_k_s"]),
            f"{_time(low)} – {_time(high)} ({row['t_k_coverage']:.0%})" if timed else "-",
            _time(row["t_b_s"]),
            f"{row['t_b_s'] / row['t_k_s']:.2f}x" if timed else "-",
            _time(row["t_sol_s"]),
            f"{row['headroom']:.1f}" if row["headroom"] is not None else "-",
            f"{row['score']:.3f}" if row["score"] is not None else "-",
        ))  # fmt: skip
        reason = row["reason"] or (row["state_reason"] if row["state"] != "scored" else None)
        if reason:
            notes.append(f"  {row['workload']}: {reason}")
        if row["reason"] and row["log"]:
            notes += [f"    | {line}" for line in row["log"].strip().splitlines()[-12:]]
    widths = [max(len(str(row[column])) for row in cells) for column in range(len(heads))]
    lines = [f"{problem.key}  {solution}"]
    lines += ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    passed = sum(row["status"] == "PASSED" for row in rows)
    labels = rows[0]["labels"] if rows else []
    return [*lines, *notes, f"{passed} of {len(rows)} workloads passed", *(f"  {label}" for label in labels)]


def _floors(floors: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What stands beside times that are printed: the time of an empty call, and that no control was run."""
    if not floors:
        return []
    found = ", ".join(f"{_time(floor['event_s'])} ({kind})" for kind, floor in floors.items())
    return [f"  floor: an empty call takes {found}", "  controls: not run (`solbench measure` does)"]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
