"""``solbench release``: what goes into a release, and out of it."""

from __future__ import annotations

import click

from solbench.cli.release_diff import diff
from solbench.cli.release_measurements import add_measurements
from solbench.cli.release_seal import seal


@click.group()
def release() -> None:
    """Put measurements into a release, seal it, compare two."""


for _command in (add_measurements, seal, diff):
    release.add_command(_command)
