"""``solbench evaluate``: is this solution right, and how fast is it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from solbench.cli.card_options import card_options
from solbench.cli.seconds import Seconds
from solbench.errors import InputError

if TYPE_CHECKING:
    from solbench.corpus.load import Problem
    from solbench.model.score import Score
    from solbench.model.trace import Trace
    from solbench.model.workload import Workload


# A call on the emulated card may take so long, s: several launches, each with a limit of its own.
EMULATED_S = 300.0


@click.command()
@click.argument("problem")
@click.option(
    "--solution", type=click.Path(path_type=Path), required=True, help="A .py, .cpp, .hip, .cu or solution.yaml."
)
@click.option(
    "--target", default="cpu", show_default=True, help="cpu, or the architecture of a card here: gfx1200, sm_90."
)
@click.option("--workload", "uuids", multiple=True, metavar="ID", help="Only this workload; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the list of traces instead of the table.")
@click.option("--trace-output", type=click.Path(path_type=Path), metavar="FILE", help="Also write traces, as JSONL.")
@click.option(
    "--timeout", type=Seconds(), default=30.0, show_default=True,
    help="Seconds a call; four times that for the first, which may compile.",
)  # fmt: skip
@click.option(
    "--compile-timeout", type=Seconds(), default=120.0, show_default=True,
    help="Seconds to build, and to load.",
)  # fmt: skip
@click.option("--replicates", type=click.IntRange(1, 100), default=1, show_default=True, help="Processes a side.")
@click.option("--samples", type=click.IntRange(1, 1000), default=6, show_default=True, help="Samples a process.")
@click.option(
    "--profile", is_flag=True, help="Profile one more call of a Python solution: labels say what took its time."
)
@click.option(
    "--device", type=click.Choice(["auto", "card", "emulator"]), default="auto", show_default=True,
    help="For gfx1200: a card, or its emulation on this CPU; auto takes a card where one is.",
)  # fmt: skip
@click.option(
    "--configuration", metavar="TEXT",
    help="Emulated: of autotuned kernels, one as Triton prints it, or each. Default: the first that fits.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Emulated: one call a workload in lock-step, no other order.")
@click.option(
    "--instructions", type=click.IntRange(1), default=20_000_000, show_default=True,
    help="Emulated: wave-instructions of a call; a workload that needs more is run at smaller sizes only.",
)  # fmt: skip
@click.option("--unsandboxed", is_flag=True, help="Without namespaces and Landlock, for code you trust; traces say so.")
@card_options
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
    profile: bool,
    device: Literal["auto", "card", "emulator"],
    configuration: str | None,
    quick: bool,
    instructions: int,
    unsandboxed: bool,
    uuid: str | None,
    lock_dir: Path | None,
    transport: Literal["ipc", "host"],
    root: Path,
) -> int:
    """Check and time a solution of PROBLEM: a key (AMD_AKA/torch2hip/l1n23_softmax), its last part, or a folder.

    A .py file defines run(inputs...) and returns the outputs; on the cpu target one that imports Triton gets a verdict
    under Triton's interpreter, and no time. A .cpp file defines extern "C" void run(...): one argument an input in
    declared order (a tensor by const pointer, a scalar by value), one pointer an output, then every axis of the problem
    as int64_t. bfloat16 and float16 are passed as uint16_t, float8 as uint8_t. A .hip or .cu file is called like a
    .cpp file, with pointers to device memory, and launches its kernels on the default stream.

    Every sample draws fresh inputs and is checked. The table shows T_k, the time of the solution with its interval,
    T_b, the eager PyTorch baseline sampled in turn with it, T_SOL, the bound, and what binds it (memory, compute, or an
    empty launch that takes longer), headroom, T_b over T_SOL, and S, 0.5 at T_b and 1 at T_SOL.

    Where no gfx1200 card is here, --target gfx1200 runs the very machine code on this CPU: a verdict with findings
    (out of bounds, races, missing waits, uninitialised memory), executed instructions and bytes, and no time. A
    workload is run whole if a call stays within --instructions, and again at small sizes in several orders.

    Exit code: 0 all workloads passed, 1 one did not, 2 bad input, 3 no sandbox or card can be had, or the traces cannot
    be written, 4 the target is not here.
    """
    from solbench.cli import emulated_table, printable
    from solbench.cli.evaluate_table import floor_lines, row, table
    from solbench.corpus.load import find_problems, load_solution
    from solbench.evaluate.evaluation import evaluate as run
    from solbench.evaluate.protocols import protocol
    from solbench.evaluate.session import Session
    from solbench.evaluate.turns import Limits
    from solbench.workspace import require_writable, write_file, writing

    if trace_output is not None:
        require_writable(trace_output, f"--trace-output {trace_output}")
    (found,) = find_problems(root, [problem])
    candidate = load_solution(solution, found.definition)
    chosen = _choose(found, uuids)
    limits = Limits(compile_s=compile_timeout, load_s=compile_timeout, first_call_s=4 * timeout, call_s=timeout)
    say: Callable[[str], None] = lambda text: click.echo(f"  {printable(text)}", err=True)  # noqa: E731
    traces: list[Trace] = []
    emulated = _emulated(target, device, uuid)
    if emulated:
        say("no gfx1200 card is used: its code is emulated on this CPU, for a verdict and no time")
        limits = replace(limits, first_call_s=max(limits.first_call_s, EMULATED_S), call_s=max(timeout, EMULATED_S))
    with Session(
        limits, target=target, unsandboxed=unsandboxed, uuid=uuid, lock_dir=lock_dir,
        transport=transport, emulated=emulated,
    ) as session:  # fmt: skip
        counts = protocol("quick", processes=replicates, samples=samples)
        if emulated:
            from solbench.evaluate.emulated import Plan, evaluate_emulated

            plan = Plan(instructions, quick, configuration)
            traces += evaluate_emulated(found, candidate, session, workloads=chosen, plan=plan, progress=say)
        else:
            traces += run(
                found, candidate, workloads=chosen, target=target, protocol=counts, session=session, progress=say,
                profile=profile,
            )  # fmt: skip
        timed = any(trace.timing is not None for trace in traces)
        floors = session.floors() if timed else {}
    floor_s = min((floor["event_s"] for floor in floors.values()), default=0.0)
    scores, bounds = _scores(found, chosen, traces, floor_s, target, say)
    if emulated:
        rows = [emulated_table.row(trace.as_dict(), bound) for trace, bound in zip(traces, bounds)]
    else:
        rows = [row(*scored) for scored in zip(traces, scores, bounds)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        shown = emulated_table.table if emulated else table
        for line in [*shown(found, candidate.name, rows), *floor_lines(floors)]:
            click.echo(printable(line))
    if trace_output is not None:  # last: what cannot be written is on the screen
        lines = [json.dumps(trace.as_dict(), ensure_ascii=False) + "\n" for trace in traces]
        with writing(f"--trace-output {trace_output}"):
            write_file(trace_output, "".join(lines).encode())
    return 0 if all(row["status"] == "PASSED" for row in rows) else 1


def _emulated(target: str, device: str, uuid: str | None) -> bool:
    """Whether the card's code is to be emulated: asked for, or gfx1200 where no such card is here."""
    from solbench.device.card import drivers
    from solbench.errors import UnsupportedError
    from solbench.model.emulation import TARGET

    if device == "emulator" and target != TARGET:
        raise UnsupportedError(f"--device emulator: only {TARGET} is emulated, not {target}")
    if device != "auto" or target != TARGET or uuid is not None:
        return device == "emulator"
    return not any(card.arch == TARGET for driver in drivers()[0] for card in driver.cards())


def _choose(problem: Problem, uuids: Iterable[str]) -> tuple[Workload, ...]:
    known = {workload.uuid: workload for workload in problem.workloads}
    for uuid in uuids:
        if uuid not in known:
            raise InputError(f"--workload {uuid}", f"no such workload; {problem.key} has {', '.join(known)}")
    return tuple(known[uuid] for uuid in dict.fromkeys(uuids)) or problem.workloads


def _scores(
    problem: Problem, workloads: Iterable[Workload], traces: list[Trace], floor_s: float, target: str,
    say: Callable[[str], None],
) -> tuple[list[Score], list[dict[str, Any] | None]]:  # fmt: skip
    """Score and bound of every trace; a bound that cannot be had is a reason, not an end."""
    from solbench.bounds import bounds_for, machine_here
    from solbench.errors import SolbenchError
    from solbench.score.workload import score_workload

    # PyTorch makes this folder when it traces, by default in /tmp.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(".solbench", "inductor").absolute()))
    machine, reason = None, "no machine model"
    try:
        machine = machine_here(target)
    except (SolbenchError, OSError) as error:
        reason = f"no machine model: {error}"
    by_uuid = {workload.uuid: workload for workload in workloads}
    scores, bounds = [], []
    for trace in traces:
        bound: dict[str, Any] | str = reason
        emulated = trace.emulation is not None and trace.emulation.instances[0].executed is not None
        if machine is not None and (trace.timing is not None or emulated):
            say(f"{trace.workload}: bound")
            bound = bounds_for(problem, by_uuid[trace.workload], machine)
        known = bound if isinstance(bound, dict) else None
        text = bound if isinstance(bound, str) else "no bound"
        scores.append(score_workload(trace, known, floor_s, no_bound=text))
        bounds.append(known)
    return scores, bounds
