"""``solbench code``: recorded sets of HIP code, and whether what is recorded is what the compilers here make."""

from __future__ import annotations

from pathlib import Path

import click

from solbench.cli.seconds import Seconds


@click.group()
def code() -> None:
    """Record code whose compiler others may lack, and derive again what is recorded.

    `solbench compile` shows what one candidate becomes; these are about all of a checkout.
    """


@code.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--target", default="gfx1200", show_default=True, help="Architecture to compile for.")
@click.option("--timeout", type=Seconds(), default=300.0, show_default=True, help="Seconds a solution.")
@click.option("--root", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Corpora.")
def record(folder: Path, target: str, timeout: float, root: Path) -> None:
    """Compile every HIP solution below --root into the new set FOLDER (measurements/code/NAME), all or none.

    The release's code stage takes it from there. A set is not edited: after a change to a solution, record a new one
    in its place.

    Exit code: 0 recorded, 2 bad input or a solution that does not compile, 4 no compiler, or an unknown target.
    """
    from solbench.cli import printable
    from solbench.code import recorded
    from solbench.code.targets import device
    from solbench.corpus.load import load_corpus
    from solbench.errors import InputError

    device(target)
    found = [
        (problem.key, solution)
        for problem in load_corpus(root)
        for solution in problem.solutions
        if "hip_cpp" in solution.spec.languages and target in solution.spec.target_hardware
    ]
    if not found:
        raise InputError(str(root), f"no HIP solution for {target}")
    done = recorded.record(found, target, folder, timeout)
    title = done.compiler["version"].partition("\n")[0]
    click.echo(printable(f"{folder}: {len(done.solutions)} solutions for {target} by {title}"))


@code.command()
@click.option("--workspace", type=click.Path(path_type=Path), default=Path(), help="A checkout.  [default: .]")
@click.option("--timeout", type=Seconds(), default=300.0, show_default=True, help="Seconds a solution.")
def check(workspace: Path, timeout: float) -> int:
    """Compile again what the release and the recorded sets of a checkout hold, and compare every byte.

    A line a candidate: same, differs, stale (its sources have changed), other compiler (named: nothing can be said), or
    no compiler. Nothing is taken from the memo, and nothing is written.

    Exit code: 0 whatever could be compared is the same, 1 something differs or is stale, 2 bad input, 3 nothing could
    be compared.
    """
    from solbench.cli import printable
    from solbench.code.rederive import rederived
    from solbench.workspace import Workspace

    verdicts: list[str] = []
    for one in rederived(Workspace.at(workspace), timeout):
        verdicts.append(one.verdict)
        reason = f": {one.reason}" if one.reason else ""
        click.echo(printable(f"{one.verdict:<14}  {one.problem}  {one.name}{reason}"))
    same, bad = verdicts.count("same"), verdicts.count("differs") + verdicts.count("stale")
    click.echo(
        f"{same} of {len(verdicts)} candidates are the same, {bad} are not, {len(verdicts) - same - bad} unknown"
    )
    return 1 if bad else 0 if same else 3
