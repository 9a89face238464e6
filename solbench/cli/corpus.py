"""``solbench corpus``: what problems there are, whether they hold, and what the analysis makes of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solbench.cli.corpus_calibrate import calibrate
from solbench.cli.corpus_source import audit, equivalence, fetch_source, materialize

if TYPE_CHECKING:
    from solbench.corpus.load import Problem
    from solbench.corpus.report import Report
    from solbench.corpus.validate import Finding

_root = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path("problems"),
    help="Folder that holds the corpora.  [default: problems]",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def corpus() -> None:
    """List the problems of a corpus, check that they hold, report how they are analysed.

    A problem is a folder with problem.yaml (axes, inputs, outputs), reference.py (what to compute) and workloads.yaml
    (sizes, how inputs are drawn, how outputs are checked).
    """


for _command in (fetch_source, materialize, audit, equivalence, calibrate):
    corpus.add_command(_command)


@corpus.command("list")
@_root
@_json
def list_(root: Path, as_json: bool) -> None:
    """Print every problem: key, kind of operation, role, number of workloads and of solutions."""
    from solbench.corpus.load import load_corpus

    rows = [
        {
            "key": problem.key,
            "op_type": problem.definition.op_type,
            "role": problem.definition.role,
            "description": problem.definition.description,
            "workloads": [workload.uuid for workload in problem.workloads],
            "solutions": [solution.name for solution in problem.solutions],
        }
        for problem in load_corpus(root)
    ]
    if as_json:
        click.echo(json.dumps({"problems": rows}, indent=2))
        return
    width = max((len(str(row["key"])) for row in rows), default=0)
    for row in rows:
        names = ", ".join(row["solutions"] or ["-"])
        click.echo(
            f"{row['key']:<{width}}  {row['op_type']:<17}  {row['role']:<8}  {len(row['workloads'] or []):2d} workloads"
            f"  {names}"
        )
    click.echo(f"{len(rows)} problems, {sum(len(row['workloads'] or []) for row in rows)} workloads")


@corpus.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--controls", is_flag=True, help="Also run the references and what must pass or fail.")
@click.option("--jobs", type=click.IntRange(1), help="Processes of the controls.  [default: one a core]")
@_root
@_json
def validate(problems: tuple[str, ...], controls: bool, jobs: int | None, root: Path, as_json: bool) -> None:
    """Check problems: files, fields, axes, and with --controls what their checks accept and refuse.

    PROBLEM is a key (AMD_AKA/torch2hip/l1n23_softmax), the last part of one, or a problem's folder; none means all,
    with the manifest of AMD_AKA. A Definition of LLM_CORE is checked with the nine workloads that its rule makes for
    gfx1200 with 16 GiB. Controls of large workloads run at reduced sizes, and the report says which.

    \b
    The controls of a problem:
      must pass   the reference itself, twice, in float64, summed in another order, with a fused kernel's arithmetic,
                  also in every stress round
      must fail   zeros, the mean, a copy of an input, an output of another draw, half of one, the transpose, sums
                  rounded to bfloat16 (where a check admits that: to float8) as they grow
      must hold   outputs follow the draw and read every input, no weight is all zeros;
                  rejected_formats: rounding a contraction's operands to one breaks a check

    Exit code: 0 all hold, 1 a control failed, 2 a problem is malformed, 3 a control could not be run.
    """
    from solbench.corpus.calibration import load_calibration
    from solbench.corpus.wellformed import subjects

    chosen = subjects(root, problems)
    for subject in chosen.found:
        load_calibration(subject.problem)
    findings: list[Finding] = []
    if controls:
        from solbench.corpus.controls import run_controls

        for subject, found in run_controls(chosen, jobs):
            findings += found
            if not as_json:
                _print_findings(subject.problem, found)
    elif not as_json:
        for subject in chosen.found:
            click.echo(f"{subject.problem.key}: {len(subject.problem.workloads)} workloads are well-formed")
    states = Counter(finding.state for finding in findings)
    if as_json:
        report = {
            "problems": [subject.problem.key for subject in chosen.found],
            "counts": chosen.counts,
            "controls": [vars(finding) for finding in findings],
            "failed": states["failed"],
            "not_run": states["not run"],
            "not_applicable": states["not applicable"],
        }
        click.echo(json.dumps(report, indent=2))
    else:
        for line in chosen.counts:
            click.echo(line)
        if controls:
            click.echo(f"{len(chosen.found)} problems, {_counted(findings)}")
    if states["failed"] or states["not run"]:
        click.get_current_context().exit(1 if states["failed"] else 3)


@corpus.command()
@click.option(
    "--path",
    "paths",
    multiple=True,
    type=click.Choice(["aten", "torchview"]),
    help="Extraction path, may be repeated; the first has to bound every workload.  [default: aten, torchview]",
)
@click.option("--problem", "problems", multiple=True, help="Only this problem (key or last part), may be repeated.")
@click.option("--target", default="gfx1200", show_default=True, help="Machine model: a name or a YAML file.")
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one a core]")
@_root
@_json
def report(
    paths: tuple[str, ...], problems: tuple[str, ...], target: str, jobs: int | None, root: Path, as_json: bool
) -> None:  # fmt: skip
    """Bound every workload by every extraction path and say where the paths disagree.

    A path records what a reference calls: aten as ATen operators, torchview as public functions. Both have to lead to
    the same T_SOL, multiply-adds and live bytes; each difference is listed with its cause. What was computed before is
    taken from .solbench/memo.

    Exit code: 0 all bound and agreed or explained, 1 a workload has no bound or a difference no cause, 2 bad input.
    """
    from solbench.corpus.load import find_problems, load_corpus
    from solbench.corpus.report import report as examine

    chosen = find_problems(root, problems) if problems else load_corpus(root)
    memo = root.resolve().parent / ".solbench" / "memo"
    # A path that is named twice is one path.
    found = examine(chosen, target, tuple(dict.fromkeys(paths)) or ("aten", "torchview"), memo, workers=jobs)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2))
    else:
        _print_report(found)
    if found.failures:
        click.get_current_context().exit(1)


@corpus.command()
@click.option("--target-template", required=True, help="What the target can do: gfx1200 or gfx942.")
@click.option("--capacity", help="Memory for one workload, as 16GiB; rounded down to a capacity class.")
@click.option("--device", help="Measure the memory instead: cpu, cuda, cuda:1.  [default: cuda]")
@click.option("--profile", "profiles", multiple=True, help="Only this profile, may be repeated.  [default: all]")
@click.option("--output", type=click.Path(path_type=Path), required=True, help="New folder for the workloads.")
@_root
def generate(
    target_template: str, capacity: str | None, device: str | None, profiles: tuple[str, ...], output: Path, root: Path
) -> None:  # fmt: skip
    """Generate the workloads of LLM_CORE for a target: nine a Definition, or none where they do not fit.

    The rules are in problems/LLM_CORE. The new folder is one for --root: view.yaml says what was decided about every
    Definition, LLM_CORE has those with workloads. The same capacity class gives the same bytes.
    """
    from solbench.corpus.llm_core.capacity import capacity_class, parse_capacity, probe
    from solbench.corpus.llm_core.generate import generate as decide
    from solbench.corpus.llm_core.rules import load_rules
    from solbench.corpus.llm_core.view import write_view
    from solbench.errors import InputError

    if capacity is not None and device is not None:
        raise InputError("--capacity", "excludes --device; the one states what the other measures")
    rules = load_rules(root / "LLM_CORE")
    rules.target(target_template)
    usable = parse_capacity(capacity) if capacity is not None else probe(device or "cuda").usable
    view = decide(rules, target_template, capacity_class(usable, rules.generation), profiles)
    write_view(view, rules, root / "LLM_CORE", output)
    for decision in view.selected:
        if decision.status != "generated":
            click.echo(f"{decision.name}: {decision.status}: {decision.detail}")
    click.echo(
        f"{len(view.generated)} of {len(view.selected)} Definitions, "
        f"{sum(len(decision.workloads) for decision in view.generated)} workloads for {view.target} "
        f"in the {view.class_gib} GiB class: {output}"
    )


def _print_report(found: Report) -> None:
    from solbench.cli import printable

    totals = found.totals()
    total = totals["workloads"]
    for row in found.rows:
        where = f"{row['problem']} {row['workload']}"
        for path, result in row["paths"].items():
            if result["bound"] is None:
                click.echo(printable(f"{where}: {path}: no bound: {result['reason']}"))
        if row["disagreement"]:
            click.echo(printable(f"{where}: {row['disagreement']}; cause: {row['cause'] or 'UNKNOWN'}"))
    for path, counts in totals["paths"].items():
        steps = ", ".join(f"{count} {step}" for step, count in counts.items())
        click.echo(f"{path}, of {total} workloads: {steps}")
    if len(found.paths) > 1:
        click.echo(f"{' and '.join(found.paths)} agree on {totals['agree']} of {total} workloads on {found.target}")


def _counted(findings: list[Finding]) -> str:
    states = Counter(finding.state for finding in findings)
    parts = [f"{states[state]} {state}" for state in ("failed", "not run", "not applicable")]
    return f"{states['holds']} of {len(findings)} controls hold, {', '.join(parts)}"


def _print_findings(problem: Problem, findings: list[Finding]) -> None:
    from solbench.cli import printable

    click.echo(f"{problem.key}: {_counted(findings)}")
    for finding in findings:
        if finding.state in ("failed", "not run"):
            state = finding.state.replace("failed", "FAILED")
            click.echo(printable(f"  {state} {finding.workload}: {finding.control}: {finding.detail}"))
        elif finding.control == "resolves" and finding.detail:
            click.echo(f"  {finding.workload}: {finding.detail}")
