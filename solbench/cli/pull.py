"""``solbench pull``: a `dvc pull` that trusts nothing."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
@click.option("-r", "--remote", help="Name of the DVC remote.  [default: the one in .dvc/config]")
def pull(root: Path, remote: str | None) -> None:
    """Fetch the artifacts that dvc.lock names, checked before they land.

    Each object is fetched up to the size that git states, hashed, and only then put into DVC's cache; DVC checks out
    what is there. At the end every file is read once more. A second pull goes on where the first stopped. Exit code: 1
    something is missing, altered or does not belong here, 3 the remote could not be asked.
    """
    from solbench.cli.remote import progress
    from solbench.remotes import pull as pulling

    click.echo(pulling.pull(root, remote, progress()))
