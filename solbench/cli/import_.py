"""``solbench import``: problems and solutions of other systems become a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solbench.corpus.exchange.notes import Carried

_output = click.option(
    "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The corpus; must not exist yet."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("import")
def import_() -> None:
    """Read problems and solutions of other systems into a new corpus folder, such as problems/NAME.

    Each thing that has no counterpart is named, a line each. What breaks a rule of its format ends the import: exit
    code 2, nothing written. At the end one workload of each problem is tried, confined: a check that accepts zeros is
    named, a warning each.
    """


@import_.command("sol-execbench")
@click.argument("source", type=click.Path(path_type=Path), metavar="DIR")
@_output
@_json
def sol_execbench(source: Path, output: Path, as_json: bool) -> None:
    """Import every folder with a definition.json and a workload.jsonl at or below DIR, and its solutions."""
    from solbench.corpus.exchange.sol_execbench import read_sol_execbench

    _show(read_sol_execbench(source, output), output, as_json)


@import_.command("flashinfer-trace")
@click.argument("source", type=click.Path(path_type=Path), metavar="DIR")
@_output
@_json
def flashinfer_trace(source: Path, output: Path, as_json: bool) -> None:
    """Import the data set at DIR: definitions/, workloads/, solutions/ and the files in blob/ that they need."""
    from solbench.corpus.exchange.flashinfer_trace import read_flashinfer_trace

    _show(read_flashinfer_trace(source, output), output, as_json)


@import_.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@_output
@_json
def kernelbench(files: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Import Python modules with Model, get_inputs and get_init_inputs (needs PyTorch: runs them, confined)."""
    from solbench.corpus.exchange.kernelbench import read_kernelbench

    _show(read_kernelbench(files, output), output, as_json)


def _show(carried: Carried, output: Path, as_json: bool) -> None:
    from solbench.cli import printable
    from solbench.corpus.exchange import report
    from solbench.corpus.exchange.zeros import with_warnings

    carried = with_warnings(carried, output)
    click.echo(printable(report.as_json(carried, output) if as_json else report.as_text(carried, output)))
