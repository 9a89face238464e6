"""What the harness takes beside the samples: `python benchmarks/harness.py [--target T] [--problem NAME]... [--json]`.

Each workload of a few problems is evaluated with its eager solution, replicate by replicate, in workers that are up. A
round is a sample of both sides: values drawn and computed by the reference, memory armed and the cache flushed, the
call, the check of its output. Printed, as medians over workloads: time beyond the rounds (opening, closing, judging,
recording), with the target of 50 ms on cpu and 150 ms on a card; what a round is made of; and how many processes each
solution, problem and replicate starts on each side, with the target of one. The ratio is to the target, at most 1 where
it is met.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from solbench.corpus.load import eager_solution, find_problems
from solbench.evaluate import evaluation, recording, sampling, turns, workers
from solbench.evaluate.measure import header
from solbench.evaluate.processes import Referee
from solbench.evaluate.protocols import protocol
from solbench.evaluate.session import Session

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = ("l1n23_softmax", "l1n8_matmul_irregular", "l1n40_layernorm", "l1n26_gelu", "l1n47_sum_reduction")
TARGET_S = {"cpu": 0.050, "card": 0.150}
# Operations of the referee that are part of a round, and what they do.
STEPS = {"draw": "draw values, run the reference", "arm": "arm the memory, flush", "check": "check the output"}
# What is beyond the rounds: of the referee's operations, and of ours.
PARTS = {
    "workload": "the referee opens it", "open": "the workers open it", "shut": "they close it", "close": "it closes it",
    "record": "the record is written",
}  # fmt: skip


class Watch:
    """Seconds that wrapped functions took since the last :meth:`take`, by name."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self.in_batch = False

    def wrap(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        """Count and time ``owner.name`` under what ``label`` makes of its arguments."""
        inner = getattr(owner, name)

        @functools.wraps(inner)
        def timed(*values: Any, **named: Any) -> Any:
            key, start = label(*values, **named), time.perf_counter()
            try:
                return inner(*values, **named)
            finally:
                self.spent[key] += time.perf_counter() - start
                self.counts[key] += 1

        setattr(owner, name, timed)

    @contextmanager
    def take(self) -> Iterator[tuple[dict[str, float], Counter[str]]]:
        """What the block spends and counts; filled in at its end."""
        self.spent.clear()
        self.counts.clear()
        spent: dict[str, float] = {}
        counts: Counter[str] = Counter()
        yield spent, counts
        spent.update(self.spent)
        counts.update(self.counts)


def watched() -> Watch:
    watch = Watch()
    watch.wrap(evaluation._Run, "_side", lambda run, name, *_: "start")
    watch.wrap(workers.Zygote, "spawn", lambda *_, trusted, **__: "baseline" if trusted else "candidate")
    watch.wrap(sampling._Rounds, "play", lambda *_, **__: "round")
    watch.wrap(sampling._Rounds, "batch", lambda *_, **__: "batch")
    watch.wrap(sampling, "open_side", lambda *_, **__: "open")
    watch.wrap(sampling, "close_side", lambda *_, **__: "shut")
    watch.wrap(turns, "call_once", lambda *_, **__: "call")
    watch.wrap(Referee, "ask", lambda referee, message, *_, **__: message["op"] + " of a batch" * watch.in_batch)
    batch = sampling._Rounds.batch

    def marked(*values: Any) -> None:
        watch.in_batch = True
        try:
            batch(*values)
        finally:
            watch.in_batch = False

    sampling._Rounds.batch = marked  # type: ignore[method-assign]
    watch.wrap(recording.Appender, "add", lambda *_, **__: "record")
    return watch


def measured(options: argparse.Namespace) -> tuple[list[dict[str, float]], list[dict[str, float]], bool]:
    """Rows of seconds, one a workload and replicate; process starts, one a problem and replicate; whether on a card."""
    watch = watched()
    rows: list[dict[str, float]] = []
    starts: list[dict[str, float]] = []
    counts = protocol("quick", processes=options.replicates)
    inner = evaluation._Run._attempt

    def attempt(run: Any, *values: Any) -> Any:
        with watch.take() as (spent, taken):
            begin = time.perf_counter()
            result = inner(run, *values)
            whole = time.perf_counter() - begin
        starts[-1].update({side: starts[-1].get(side, 0) + taken[side] for side in ("candidate", "baseline")})
        if result is None and taken["round"]:
            rounds = taken["round"]
            inside = {name: spent.get(name, 0.0) / rounds for name in (*STEPS, "call")}
            beyond = whole - spent.get("start", 0.0) - spent.get("warm", 0.0) - spent["round"] - spent.get("batch", 0.0)
            parts = {name: spent.get(name, 0.0) for name in PARTS}
            rows.append({"beyond": beyond, "whole": whole, "round": spent["round"] / rounds, **inside, **parts})
        return result

    evaluation._Run._attempt = attempt  # type: ignore[method-assign]
    with Session(target=options.target) as session, tempfile.TemporaryDirectory() as folder:
        with recording.Writer(Path(folder) / "set.jsonl", header(session, options.target, counts, None)) as writer:
            for problem in find_problems(ROOT / "problems", options.problem or PROBLEMS):
                renew = session.renew

                def renewed(renew: Callable[[], None] = renew) -> None:
                    starts.append({})
                    renew()

                starts.append({})
                session.renew = renewed if options.replicates > 1 else renew  # type: ignore[method-assign]
                traces = evaluation.evaluate(
                    problem, eager_solution(problem.definition), target=options.target, protocol=counts, session=session
                )
                for trace in traces:
                    print(f"  {problem.key} {trace.workload} {trace.status}", file=sys.stderr)
                    with watch.take() as (spent, _):
                        writer.add(problem.key, trace)
                    if rows:
                        rows[-1]["beyond"] += spent["record"]
                        rows[-1]["record"] = spent["record"]
                session.renew = renew  # type: ignore[method-assign]
        on_card = session.card is not None
    return rows, [row for row in starts if row], on_card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu", help="cpu, or the architecture of a card here")
    parser.add_argument("--problem", action="append", help=f"only this one; default {', '.join(PROBLEMS)}")
    parser.add_argument("--replicates", type=int, default=2, help="processes a side")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, starts, on_card = measured(options)
    if not rows:
        raise SystemExit("no workload was timed")

    def median(name: str) -> float:
        return statistics.median(row[name] for row in rows)

    target_s = TARGET_S["card" if on_card else "cpu"]
    table: list[tuple[str, int, float, str, float | None]] = [
        ("beyond the rounds, a workload: median", len(rows), 1e3 * median("beyond"), "ms", 1e3 * target_s),
        ("beyond the rounds, a workload: largest", 1, 1e3 * max(row["beyond"] for row in rows), "ms", None),
        *((f"  {what}", len(rows), 1e3 * median(name), "ms", None) for name, what in PARTS.items()),
        ("all of a workload: median", len(rows), 1e3 * median("whole"), "ms", None),
        ("a round: median", len(rows), 1e3 * median("round"), "ms", None),
        *((f"  {what}", len(rows), 1e3 * median(name), "ms", None) for name, what in STEPS.items()),
        ("  the calls, on the orchestrator's clock", len(rows), 1e3 * median("call"), "ms", None),
        ("  the rest: stopping, waking, looking", len(rows), 1e3 * statistics.median(
            row["round"] - sum(row[name] for name in (*STEPS, "call")) for row in rows
        ), "ms", None),
        *((f"processes of the {side}, a replicate: largest", len(starts), max(row[side] for row in starts), "", 1.0)
          for side in ("candidate", "baseline")),
    ]  # fmt: skip
    if options.json:
        fields = ("what", "count", "value", "unit", "target")
        print(json.dumps([dict(zip(fields, line, strict=True)) for line in table], indent=2))
        return
    print(f"{'what':<52} {'n':>4} {'value':>10} {'target':>8} {'ratio':>6}")
    for what, count, value, unit, target in table:
        aim, ratio = ("", "") if target is None else (f"{target:g} {unit}".strip(), f"{value / target:.2f}")
        print(f"{what:<52} {count:>4} {value:>7.2f} {unit:<2} {aim:>8} {ratio:>6}")


if __name__ == "__main__":
    main()
