"""``solbench repro``: rebuild what changed, one at a time."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
@click.option("--local", is_flag=True, help="The local release: measure the cpu of this machine (DVC root local/).")
@click.option("--force", is_flag=True, help="Run every stage again, changed or not.")
@click.option("--full", is_flag=True, help="With --local: the published protocol, six processes.")
@click.option("--budget", default="240s", show_default=True, help="With --local: time for measuring (e.g. 240s, 10m).")
def repro(root: Path, local: bool, force: bool, full: bool, budget: str) -> int:
    """Rebuild a release: run `dvc repro` under our own lock.

    Without options, the published release: computed stages and recorded measurements; its root hash is the same on
    every machine. With --local, the release of this machine, in local/, which git ignores.
    """
    from solbench import pipeline

    seconds = pipeline.parse_duration(budget)
    if local:
        return pipeline.repro_local(root, force=force, protocol="full" if full else "quick", budget_s=seconds)
    return pipeline.repro(root, force=force)
