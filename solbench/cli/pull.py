"""``solbench pull``: a `dvc pull` that trusts nothing."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
@click.option("-r", "--remote", help="Name of the DVC remote.  [default: the one in .dvc/config]")
def pull(root: Path, remote: str | None) -> None:
    """Fetch the artifacts that dvc.lock names, checked before they land.

    Directory listings are checked before anything is written, files as they arrive, and at the end every object
    against the indexes in git. A second pull goes on where the first stopped.
    """
    from solbench import remote as remotes

    click.echo(remotes.pull(root, remote))
