"""``solbench push``: a `dvc push` that looks whether all arrived."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
@click.option("-r", "--remote", help="Name of the DVC remote.  [default: the one in .dvc/config]")
def push(root: Path, remote: str | None) -> None:
    """Send the artifacts that dvc.lock names, then ask the remote for every object."""
    from solbench import remote as remotes

    click.echo(remotes.push(root, remote))
