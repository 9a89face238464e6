"""``solbench measure``: a corpus on this machine, into one measurement set."""

from __future__ import annotations

from pathlib import Path

import click

from solbench.errors import InputError


@click.command()
@click.option(
    "--target", default="cpu", show_default=True, help="cpu, or the architecture of a card here: gfx1200, sm_90."
)
@click.option("--corpus", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Folder.")
@click.option(
    "--candidates", multiple=True, default=("all",), show_default=True, metavar="all|NAME",
    help="Names of solutions; may be repeated or comma-separated. eager is the baseline against itself.",
)  # fmt: skip
@click.option("--problem", "names", multiple=True, metavar="PROBLEM", help="Only this problem; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="measurements/<target>/NAME.jsonl.")
@click.option("--budget", metavar="TIME", help="Stop after this time (300s, 10m, 2h); the rest becomes omissions.")
@click.option("--protocol", "name", type=click.Choice(["quick", "full"]), default="quick", show_default=True)
@click.option("--max-call", type=click.FloatRange(min=0.0001), default=0.25, show_default=True, help="Seconds a call.")
@click.option("--unsandboxed", is_flag=True, help="Without namespaces and Landlock, for code you trust; traces say so.")
@click.option("--uuid", help="The card, on a GPU target.  [default: $GPU_LOCK_UUID, else the only card]")
@click.option("--lock-dir", type=click.Path(path_type=Path), help="Folder of card locks.  [default: $GPU_LOCK_DIR]")
@click.option("--no-calibrate", is_flag=True, help="On cpu: leave the machine model out of the header.")
def measure(
    target: str,
    corpus: Path,
    candidates: tuple[str, ...],
    names: tuple[str, ...],
    out: Path,
    budget: str | None,
    name: str,
    max_call: float,
    unsandboxed: bool,
    uuid: str | None,
    lock_dir: Path | None,
    no_calibrate: bool,
) -> None:
    """Measure solutions of a corpus and write a measurement set: a header, one trace a line, a footer.

    Needs neither DVC nor git. A run that was killed goes on where it was when it is called again with the same --out.
    quick takes 6 samples in one process; full takes 9 in each of six newly started processes, as published.
    """
    from solbench.cli import printable
    from solbench.corpus.load import find_problems, load_corpus
    from solbench.device.calibrate import calibrate_cpu
    from solbench.evaluate.evaluation import protocol
    from solbench.evaluate.measure import measure as run
    from solbench.evaluate.session import Session
    from solbench.pipeline import parse_duration

    if out.suffix != ".jsonl":
        raise InputError(f"--out {out}", "must end in .jsonl")
    wanted = [part for entry in candidates for part in entry.split(",") if part]
    problems = find_problems(corpus, names) if names else load_corpus(corpus)
    budget_s = parse_duration(budget) if budget is not None else None
    hardware = None
    if target == "cpu" and not no_calibrate:
        click.echo("  calibrating this cpu", err=True)
        hardware = calibrate_cpu()
    with Session(target=target, unsandboxed=unsandboxed, uuid=uuid, lock_dir=lock_dir) as session:
        summary = run(
            problems,
            out,
            target=target,
            protocol=protocol(name, max_call_s=max_call),
            candidates=None if "all" in wanted else wanted,
            budget_s=budget_s,
            hardware=hardware,
            session=session,
            progress=lambda text: click.echo(f"  {printable(text)}", err=True),
        )
    click.echo(printable(f"{out}: {summary}"))
