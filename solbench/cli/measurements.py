"""``solbench measurements``: measurement sets that are there already."""

from __future__ import annotations

from pathlib import Path

import click

_set = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def measurements() -> None:
    """Put measurement sets together. `solbench measure` makes them."""


@measurements.command()
@click.argument("sets", nargs=-1, required=True, type=_set, metavar="SET...")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="measurements/<target>/NAME.jsonl.")
def merge(sets: tuple[Path, ...], out: Path) -> None:
    """Write complete sets as one: of several cards, or of several hosts of one kind.

    All must be of the same target, protocol, harness, environment and kind of device. Each trace names the card that
    it was taken on. A record that several sets have stands once; two different records of one workload and solution are
    refused. What a set had no time for is taken from another. The machine model is that of the first set.
    """
    from solbench.cli import printable
    from solbench.errors import InputError
    from solbench.evaluate.recording import merge_sets

    if out.suffix != ".jsonl":
        raise InputError(f"--out {out}", "must end in .jsonl")
    count, cards = merge_sets(sets, out)
    click.echo(printable(f"{out}: {count} records" + (f" on {cards} cards" if cards > 1 else "")))
