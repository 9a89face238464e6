"""``solbench measure``: a corpus on this machine, into one measurement set."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from solbench.cli.card_options import card_options
from solbench.errors import InputError
from solbench.model.solution import COMPILED


@click.command()
@click.option(
    "--target", default="cpu", show_default=True, help="cpu, or the architecture of a card here: gfx1200, sm_90."
)
@click.option("--corpus", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Folder.")
@click.option(
    "--candidates", multiple=True, default=("all",), show_default=True, metavar="all|NAME",
    help="Names of solutions; may be repeated or comma-separated. eager is the baseline against itself; compile, which "
    "all does not mean, the reference through torch.compile.",
)  # fmt: skip
@click.option("--capacity", metavar="SIZE", help="With LLM_CORE, for so much memory: 16GiB is one of its classes.")
@click.option("--problem", "names", multiple=True, metavar="PROBLEM", help="Only this problem; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="measurements/<target>/NAME.jsonl.")
@click.option("--budget", metavar="TIME", help="Begin nothing more after this time (300s, 10m, 2h).")
@click.option("--final", is_flag=True, help="Close the set: what is left becomes omissions.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Cards to measure on at once."
)
@click.option("--protocol", "name", type=click.Choice(["quick", "full"]), default="quick", show_default=True)
@click.option("--max-call", type=click.FloatRange(min=0.0001), default=0.25, show_default=True, help="Seconds a call.")
@click.option("--unsandboxed", is_flag=True, help="Without namespaces and Landlock, for code you trust; traces say so.")
@card_options
@click.option("--no-calibrate", is_flag=True, help="On cpu: without a machine model, and so without controls.")
def measure(
    target: str,
    corpus: Path,
    candidates: tuple[str, ...],
    capacity: str | None,
    names: tuple[str, ...],
    out: Path,
    budget: str | None,
    final: bool,
    workers: int,
    name: str,
    max_call: float,
    unsandboxed: bool,
    uuid: str | None,
    lock_dir: Path | None,
    transport: Literal["ipc", "host"],
    no_calibrate: bool,
) -> int:
    """Measure solutions of a corpus and write a measurement set: a header, one trace a line, a footer.

    First of all controls of known cost are sampled (nothing, a copy, a sleep, a product, a fill of half the cache);
    where one reads wrong, nothing is measured.

    Needs neither DVC nor git. Until all is measured the set is NAME.jsonl.partial; a run that was killed, or whose
    --budget was spent, goes on where it was when it is called again with the same --out, on the same kind of device.
    quick takes 6 to 18 samples in one process, until the medians are known to 2 %; full takes 9 to 27 in each of six
    newly started processes, as published.

    Exit code: 0 the set is complete, 2 bad input, 3 something is left to measure, or it could not be measured, 4 the
    target is not here.
    """
    from solbench.cli import printable
    from solbench.corpus.compiled import with_compiled
    from solbench.corpus.configured import chosen_problems
    from solbench.device.calibrate import calibrate_cpu
    from solbench.evaluate.cards import measure_on_cards, seats_here
    from solbench.evaluate.controls import controls_here
    from solbench.evaluate.jobs import jobs
    from solbench.evaluate.measure import measure as run
    from solbench.evaluate.protocols import protocol
    from solbench.evaluate.session import Session
    from solbench.pipeline import parse_duration
    from solbench.workspace import require_writable

    begun_s = time.monotonic()
    if out.suffix != ".jsonl":
        raise InputError(f"--out {out}", "must end in .jsonl")
    if target == "cpu" and workers > 1:
        raise InputError(f"--workers {workers}", "one cpu is one device; leave it out")
    if uuid is not None and workers > 1:
        raise InputError(f"--uuid {uuid}", f"names one card; leave it out for --workers {workers}")
    require_writable(out, f"--out {out}")
    limit_s = parse_duration(budget) if budget is not None else None
    wanted = [part for entry in candidates for part in entry.split(",") if part]
    problems = chosen_problems(corpus, names, target, capacity)
    if COMPILED in wanted:
        problems = with_compiled(problems)
    chosen = None if "all" in wanted else wanted
    jobs(problems, chosen)  # a name that no solution has is told before minutes of calibrating

    def say(text: str) -> None:
        click.echo(f"  {printable(text)}", err=True)

    def options() -> dict[str, Any]:
        return {
            "candidates": chosen,
            "protocol": protocol(name, max_call_s=max_call),
            # Loading and calibrating have taken their part of it.
            "budget_s": None if limit_s is None else max(begun_s + limit_s - time.monotonic(), 0.0),
            "final": final,
            "progress": say,
        }

    if workers > 1:
        seats = seats_here(target, workers, lock_dir, unsandboxed)
        seats = tuple(replace(seat, transport=transport) for seat in seats)
        summary = measure_on_cards(problems, out, seats, **options())
    else:
        hardware = None
        if target == "cpu" and not no_calibrate:
            click.echo("  calibrating this cpu", err=True)
            hardware = calibrate_cpu()
        with Session(
            target=target, unsandboxed=unsandboxed, uuid=uuid, lock_dir=lock_dir,
            transport=transport,
        ) as session:  # fmt: skip
            controls = controls_here(session, hardware, progress=say)
            before_s = time.monotonic() - begun_s
            if limit_s is not None and before_s >= limit_s:
                say(f"--budget {budget} is spent: what comes before the first workload took {before_s:.0f} s")
            summary = run(
                problems, out, target=target, hardware=hardware, controls=controls, session=session, **options()
            )
    click.echo(printable(f"{out}: {summary}"))
    return 3 if summary.left else 0
