"""``solbench analyze``: how fast could any kernel for this be."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solbench.cli.seconds import Seconds
from solbench.errors import InputError

if TYPE_CHECKING:
    from solbench.analysis import Request


@click.command()
@click.argument("subject", metavar="[PROBLEM|FILE.py]", required=False)
@click.option("--workload", metavar="ID", help="Which workload of PROBLEM; may be left out where there is one.")
@click.option("--target", metavar="NAME|FILE", default="gfx1200", show_default=True, help="Machine model to bound for.")
@click.option(
    "--path",
    type=click.Choice(["aten", "torchview"]),
    default="aten",
    show_default=True,
    help="How the reference is recorded; never a mix, never a fallback.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write all artifacts into this new (or empty) folder, all or none.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the analysis with its machine model.")
@click.option("--explain", is_flag=True, help="Print what each operation costs, and what would have to change.")
@click.option("--attainable", is_flag=True, help="Also what one buffer level can attain (attainable-traffic.json).")
@click.option("--no-attest", is_flag=True, help="Do not check the program against the reference by running both.")
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Bound an einsum_graph.yaml of an earlier analysis instead; needs no PyTorch.",
)
@click.option("--timeout", type=Seconds(), default=300.0, show_default=True, help="Seconds.")
@click.option("--root", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Corpora.")
def analyze(
    subject: str | None, workload: str | None, target: str, path: str, output: Path | None, as_json: bool,
    explain: bool, attainable: bool, no_attest: bool, program: Path | None, timeout: float, root: Path,
) -> None:  # fmt: skip
    """Derive T_SOL, the least time of any kernel for a reference on a target.

    PROBLEM is a key (AMD_AKA/torch2hip/l1n23_softmax), its last part, or a folder. FILE.py is a plain module: class
    Model with get_inputs() and get_init_inputs() (KernelBench's form), or a function run with get_inputs(). Parameters
    and buffers count as inputs; IN_PLACE = ("name", ...) lists the inputs that the call may write, AS_DRAWN those that
    the attestation may not set to zero.

    The reference is recorded on shapes alone: nothing of its size is allocated. A replay at small sizes attests that
    what is bounded is what the reference computes; where it cannot be tried the result says why. It all runs in a
    process of its own, which may write nowhere else.

    \b
    Files in DIR, each canonical JSON, which every YAML reader reads:
      operator_graph.yaml           what the reference calls
      einsum_graph.yaml             what it computes, as few kinds of operations
      conversion-attestation.yaml   seeds, tolerances and verdict of the replay
      solar-analysis.yaml           the bound, what it stands on, and the machine model
      attainable-traffic.json       with --attainable
      manifest.yaml                 kind, BLAKE3 digest and size of each

    Exit code: 0 done, 2 bad input, one that cannot be recorded or converted among it, 3 it cannot be decided.
    """
    from solbench.analysis import analyse, require_new, write
    from solbench.cli import printable

    request = _request(subject, workload, target, path, attainable, no_attest, program, root)
    if output is not None:
        require_new(output)
    elif attainable and not as_json:
        raise InputError("--attainable", "needs --output DIR, or --json")
    result = analyse(request, timeout)
    if output is not None:
        write(output, result.files)
    if result.log:
        click.echo(printable(result.log.rstrip("\n")), err=True)
    if as_json:
        printed = dict(result.analysis)
        if attainable:
            printed["attainable_traffic"] = json.loads(result.files["attainable-traffic.json"])
        click.echo(json.dumps(printed, indent=2))
    if explain:
        from solbench.explain import print_tables

        columns = shutil.get_terminal_size((120, 24)).columns
        print_tables(result.analysis, result.program, sys.stderr if as_json else sys.stdout, columns)
    elif not as_json:
        from solbench.explain import summary

        for line in summary(result.analysis):
            click.echo(printable(line))


def _request(
    subject: str | None, workload: str | None, target: str, path: str, attainable: bool, no_attest: bool,
    program: Path | None, root: Path,
) -> Request:  # fmt: skip
    """What is asked, checked as far as it can be without PyTorch."""
    from solbench.analysis import Request
    from solbench.bounds import machine_here
    from solbench.corpus.load import find_problems

    if (subject is None) == (program is None):
        raise InputError("analyze", "give either PROBLEM or FILE.py, or --program FILE")
    machine = machine_here(target).to_dict()
    if program is not None:
        if not program.is_file():
            raise InputError(str(program), "no such file")
        return Request("program", str(program), str(program.absolute()), machine, attainable=attainable)
    assert subject is not None
    if subject.endswith(".py"):
        if workload is not None:
            raise InputError("--workload", f"{subject} has none: its sizes are those of get_inputs()")
        if not Path(subject).is_file():
            raise InputError(subject, "no such file")
        return Request("module", subject, subject, machine, None, path, not no_attest, attainable)
    (problem,) = find_problems(root, [subject])
    known = [item.uuid for item in problem.workloads]
    if workload is None and len(known) > 1:
        raise InputError("--workload", f"which one? {problem.key} has {', '.join(known)}")
    if workload is not None and workload not in known:
        raise InputError(f"--workload {workload}", f"no such workload; {problem.key} has {', '.join(known)}")
    folder = str(problem.path.absolute())
    return Request("problem", problem.key, folder, machine, workload or known[0], path, not no_attest, attainable)
