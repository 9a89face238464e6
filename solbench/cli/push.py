"""``solbench push``: a `dvc push` that looks before and after."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
@click.option("-r", "--remote", help="Name of the DVC remote.  [default: the one in .dvc/config]")
@click.option("--full", is_flag=True, help="Read what is there, and replace what was altered.")
def push(root: Path, remote: str | None, full: bool) -> None:
    """Send the artifacts that dvc.lock names and the remote lacks, then ask for them again.

    Nothing is sent while an object is damaged here. HTTP remotes are read-only (exit code 4).
    """
    from solbench.cli.remote import progress
    from solbench.remotes import push as pushing

    click.echo(pushing.push(root, remote, full=full, progress=progress()))
