"""``solbench export``: problems, solutions and traces in the form of other systems."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("form", type=click.Choice(["sol-execbench", "flashinfer-trace"]), metavar="FORMAT")
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option(
    "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder; must not exist yet."
)
@click.option(
    "--traces", "trace_files", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="A measurement set, or what `evaluate --trace-output` wrote; may be repeated.",
)  # fmt: skip
@click.option("--root", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Corpora.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export(
    form: str, problems: tuple[str, ...], output: Path, trace_files: tuple[Path, ...], root: Path, as_json: bool
) -> None:
    """Write problems, their solutions and traces for another system: sol-execbench or flashinfer-trace.

    PROBLEM is a key (AMD_AKA/torch2hip/l1n23_softmax), the last part of one, or a problem's folder; none means all.
    Inputs that the other system cannot draw are drawn once and written as safetensors (needs PyTorch). Each thing that
    has no counterpart is named, a line each.
    """
    from solbench.cli import printable
    from solbench.corpus.exchange import report
    from solbench.corpus.exchange.flashinfer_trace import write_flashinfer_trace
    from solbench.corpus.exchange.notes import Notes
    from solbench.corpus.exchange.sol_execbench import write_sol_execbench
    from solbench.corpus.exchange.traces import read_traces
    from solbench.corpus.load import find_problems, load_corpus

    chosen = find_problems(root, problems) if problems else load_corpus(root)
    notes = Notes()
    traces = [seen for path in trace_files for seen in read_traces(path, notes)]
    write = write_sol_execbench if form == "sol-execbench" else write_flashinfer_trace
    carried = write(chosen, traces, output, notes)
    click.echo(printable(report.as_json(carried, output) if as_json else report.as_text(carried, output)))
