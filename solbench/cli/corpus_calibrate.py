"""``solbench corpus calibrate``: the evidence behind tolerances, measured on this machine's processor."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), required=True,
              help="Folder of corpora that the new files go into, such as problems.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one a core]")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path("problems"),
    help="Folder that holds the corpora.  [default: problems]",
)
def calibrate(problems: tuple[str, ...], output: Path, jobs: int | None, root: Path) -> None:
    """Measure how much of each tolerance right implementations use, and which lower precisions exceed it.

    PROBLEM is named as for `validate`; none means all. Large workloads are measured at reduced sizes. Each problem
    with a tolerance gets a new file, OUTPUT/<corpus>/calibration/<suite>/<name>.yaml; an old one is never overwritten,
    delete it first. `corpus validate` checks that they are there for what a problem is today, with --controls also
    that this processor's shares are like the committed ones.

    Exit code: 0 written, 2 bad input; then nothing is written.
    """
    from solbench.cli import printable
    from solbench.corpus.calibrate import calibrate as measure
    from solbench.corpus.calibration import calibration_path, require_new, tolerant_outputs, write_calibration
    from solbench.corpus.controls import in_processes
    from solbench.corpus.wellformed import Subjects, subjects

    chosen = subjects(root, problems)
    found = tuple(subject for subject in chosen.found if tolerant_outputs(subject.problem))
    paths = {s.problem.key: calibration_path(output / s.problem.corpus, s.problem) for s in found}
    for path in paths.values():
        require_new(path)
    for subject, calibration in in_processes(Subjects(found, (), chosen.rules), measure, jobs):
        write_calibration(calibration, paths[subject.problem.key])
        most = max(calibration.required, key=lambda row: row.most)
        click.echo(printable(f"{subject.problem.key}: {most.output}: {most.variant} uses {most.most:g}"))
    click.echo(f"{len(found)} of {len(chosen.found)} problems have tolerances; measured below {output}")
