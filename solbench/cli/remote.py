"""``solbench remote``: look at a DVC remote."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solbench.remotes.transfer import Progress

_SHOWN = 10


@click.group()
def remote() -> None:
    """Look at a DVC remote. Nothing here writes, here or there."""


@remote.command()
@click.option("-r", "--remote", "name", help="Name of the DVC remote.  [default: the one in .dvc/config]")
@click.option("--full", is_flag=True, help="Read every object and check its hashes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
def check(name: str | None, full: bool, as_json: bool, root: Path) -> int:
    """Ask a remote for every object that dvc.lock and its listings name.

    By default for existence, and size where the remote tells it. Exit code: 0 all there, 1 something is missing or
    altered, 3 could not ask.
    """
    from solbench.cli import printable
    from solbench.remotes.check import check as ask_for_everything

    report = ask_for_everything(root, name, full=full, progress=progress())
    if as_json:
        click.echo(json.dumps(report.as_dict(), indent=2))
        return report.exit_code
    for state in ("missing", "altered", "unknown"):
        answers = report.having(state)
        for answer in answers[:_SHOWN]:
            click.echo(printable(f"{state}  {answer.why or answer.wanted}"))
        if len(answers) > _SHOWN:
            click.echo(f"... and {len(answers) - _SHOWN} more {state}; --json prints all")
    counts = [(len(report.having("missing")), "missing"), (len(report.having("altered")), "altered")]
    counts += [(len(report.having("unknown")), "not known"), (report.unlisted, "that a listing would name")]
    how = "size and hashes" if full else "name and size"
    tail = ", ".join(f"{count} {what}" for count, what in counts if count)
    click.echo(
        f"remote {report.remote}: {len(report.having('there'))} of {report.total} objects are there by {how}"
        + (f"; {tail}" if tail else "")
    )
    return report.exit_code


def progress() -> Progress:
    """Counts on a terminal, a few times a second; nothing where nobody looks."""
    if not sys.stderr.isatty():
        from solbench.remotes.transfer import silent

        return silent
    last = 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total:
            sys.stderr.write("\r\033[K")
        elif now - last > 0.2:
            last = now
            sys.stderr.write(f"\r{done} of {total} {what}\033[K")
        sys.stderr.flush()

    return show
