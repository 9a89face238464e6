"""``solbench stage``: what ``dvc.yaml`` calls."""

from __future__ import annotations

from pathlib import Path

import click

from solbench.stages import STAGES


@click.command()
@click.argument("name", type=click.Choice(list(STAGES)))
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
def stage(name: str, root: Path) -> None:
    """Run one stage of the pipeline in a DVC root, reading the indexes of the stages before it."""
    from solbench.stages import run_stage
    from solbench.workspace import Workspace

    click.echo(f"{name}: {run_stage(name, Workspace.at(root))}")
