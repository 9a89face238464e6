"""``solbench release add-measurements``: a measurement set into the release, untouched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solbench.score.records import Origin


@click.command("add-measurements")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", help="Name of the set.  [default: the file's]")
@click.option("--imported", is_flag=True, help="Somebody else measured it; results say so.")
@click.option(
    "--reproduces", is_flag=True, help="It repeats sets that are there; it gives no score, but a word on theirs."
)
@click.option("--harness", multiple=True, metavar="HASH", help="Also accept this harness; may be repeated.")
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
def add_measurements(
    file: Path, name: str | None, imported: bool, reproduces: bool, harness: tuple[str, ...], root: Path
) -> None:
    """Check the complete measurement set FILE and copy it, byte for byte, below measurements/<target>/.

    Checked: every record, the protocol (quick or full as they are now), the harness (this checkout's, or that of the
    sets there), device and cards, the controls, that no workload of a problem is left out without a reason, and that no
    result stands twice. `solbench repro` then makes scores of it. A set whose baseline and candidates do not share
    device, environment and protocol with the target's other sets is taken, and its totals are withheld.
    """
    from solbench.cli import printable
    from solbench.errors import InputError
    from solbench.release import measurements
    from solbench.workspace import Workspace

    if imported and reproduces:
        raise InputError("--imported", "not beside --reproduces: what repeats a result may be anybody's")
    origin: Origin = "imported" if imported else "reproductions" if reproduces else "own"
    added = measurements.add(Workspace.at(root), file, name=name, origin=origin, harness=harness)
    old = added.records - added.current
    click.echo(printable(f"{added.path}: {added.records} records of {', '.join(added.entries)}"))
    click.echo(f"  {added.workloads} of {added.of} workloads of the target have one")
    if old:
        click.echo(f"  {old} of {added.records} records are of another version of their workload or solution: left out")
    for note in added.notes:
        click.echo(printable(f"  {note}"))
    click.echo("now run `solbench repro`, and commit the set with what it changes")
