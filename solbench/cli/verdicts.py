"""``solbench verdicts``: what the emulated card says of all candidates, recorded, and whether it says so again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solbench.errors import InputError
from solbench.model.emulation import TARGET

if TYPE_CHECKING:
    from solbench.corpus.load import Problem
    from solbench.evaluate.session import Session

_PROBLEMS = click.option("--problem", "names", multiple=True, metavar="PROBLEM", help="Only this; may be repeated.")
_CAPACITY = click.option(
    "--capacity", default="16GiB", show_default=True, help="Memory of the card that LLM_CORE's workloads are for."
)
_UNSANDBOXED = click.option("--unsandboxed", is_flag=True, help="Without namespaces and Landlock, for code you trust.")
_ROOT = click.option(
    "--root", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Corpora."
)
_DEFAULT = Path("measurements", "verdicts", "gfx1200.jsonl")


@click.group()
def verdicts() -> None:
    """Run the gfx1200 code of all Triton and HIP candidates on the emulated card: verdicts, no times.

    `solbench evaluate --target gfx1200` does so with one candidate, and shows what it finds.
    """


@verdicts.command()
@_PROBLEMS
@click.option("--out", type=click.Path(path_type=Path), default=_DEFAULT, show_default=True, help="The set to write.")
@click.option(
    "--instructions", type=click.IntRange(1), default=3_000_000, show_default=True,
    help="Wave-instructions of a call; a workload that needs more is run at smaller sizes only.",
)  # fmt: skip
@_CAPACITY
@_UNSANDBOXED
@_ROOT
def record(names: tuple[str, ...], out: Path, instructions: int, capacity: str, unsandboxed: bool, root: Path) -> None:
    """Record the verdict of every candidate on every workload of its problem.

    What OUT or OUT.partial holds of the same solution, workload, emulator, versions and limit is not run again; a run
    that was killed goes on where it was. The release's stage `verdicts` takes the set from there.

    Exit code: 0 recorded, whatever the verdicts are, 2 bad input, 3 no sandbox can be had, or it cannot be written.
    """
    from solbench.cli import printable
    from solbench.evaluate.verdicts import record as run
    from solbench.workspace import require_writable

    if out.suffix != ".jsonl":
        raise InputError(f"--out {out}", "must end in .jsonl")
    require_writable(out, f"--out {out}")
    problems = _problems(root, names, capacity)
    with _session(unsandboxed) as session:
        done = run(problems, out, session, instructions=instructions, whole=not names, progress=_say())
    click.echo(printable(f"{out}: {done}"))


@verdicts.command()
@_PROBLEMS
@click.option("--recorded", type=click.Path(path_type=Path), default=_DEFAULT, show_default=True, help="The set.")
@_CAPACITY
@_UNSANDBOXED
@_ROOT
def check(names: tuple[str, ...], recorded: Path, capacity: str, unsandboxed: bool, root: Path) -> int:
    """Run again what is recorded, and compare status and executed counts: a line a difference.

    Inputs are drawn anew, so a candidate whose branches depend on values may execute other counts.

    Exit code: 0 all is as recorded, 1 something is not, or is not recorded, 2 bad input, 3 no sandbox can be had.
    """
    from solbench.cli import printable
    from solbench.evaluate.verdicts import check as run

    if not recorded.is_file():
        raise InputError(f"--recorded {recorded}", "no such file; `solbench verdicts record` writes it")
    problems = _problems(root, names, capacity)
    total = same = 0
    with _session(unsandboxed) as session:
        for key, difference in run(recorded, problems, session, progress=_say()):
            total += 1
            same += difference is None
            if difference is not None:
                click.echo(printable(f"{key}: {difference}"))
    click.echo(f"{same} of {total} verdicts are as recorded")
    return 0 if same == total else 1


def _problems(root: Path, names: tuple[str, ...], capacity: str) -> list[Problem]:
    """Those of LLM_CORE have no workloads without a capacity; corpora without it need none."""
    from solbench.corpus.configured import GENERATED, chosen_problems

    return chosen_problems(root, names, TARGET, capacity if (root / GENERATED).is_dir() else None)


def _session(unsandboxed: bool) -> Session:
    from solbench.cli.evaluate import EMULATED_S
    from solbench.evaluate.session import Session
    from solbench.evaluate.turns import Limits

    limits = Limits(first_call_s=EMULATED_S, call_s=EMULATED_S)
    return Session(limits, target=TARGET, unsandboxed=unsandboxed, emulated=True)


def _say() -> Callable[[str], None]:
    from solbench.cli import printable

    return lambda text: click.echo(f"  {printable(text)}", err=True)
