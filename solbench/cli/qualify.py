"""``solbench qualify``: whether a target has shown what its results need."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from solbench.cli.card_options import card_options

if TYPE_CHECKING:
    from solbench.corpus.load import Problem
    from solbench.model.readiness import Readiness
    from solbench.release.readiness import Case
    from solbench.workspace import Workspace

_LINES = 20
_root = click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout.  [default: .]")
_target = click.option("--target", required=True, metavar="NAME", help="A target of the release: gfx1200, sm_90, cpu.")
_json = click.option("--json", "as_json", is_flag=True, help="Print the matrix.")


@click.group()
def qualify() -> None:
    """Write the readiness matrix of a target: what there is, or ran, of all that its results need.

    static: the bound of every workload, and the code of every candidate that is compiled for it. canary: the smallest
    and the largest workload of each problem ran, by the baseline and every solution for the target. full: all of them
    ran, once each. `solbench release seal` asks for static on every target, and for full where there are times.
    """


@qualify.command()
@_target
@_json
@_root
def static(target: str, as_json: bool, root: Path) -> int:
    """Show what the release has derived for a target; the stage `readiness` stores the same matrix.

    Exit code: 0 all ready, 1 something is not.
    """
    from solbench.release import readiness
    from solbench.workspace import Workspace

    workspace = Workspace.at(root)
    sections = _sections(workspace)
    _require_target(target, readiness.targets_of(sections))
    matrix = readiness.static(sections, workspace.store.load, target)
    if matrix is None:
        click.echo(f"{target}: the release has no workload for it")
        return 1
    return _show(matrix, as_json)


def _runs(level: Literal["canary", "full"], text: str) -> click.Command:
    @click.command(level, help=text)
    @_target
    @click.option("--budget", metavar="TIME", help="Begin nothing more after this time (300s, 10m, 2h).")
    @click.option(
        "--max-call", type=click.FloatRange(min=0.001), default=60.0, show_default=True, help="Seconds a call."
    )
    @click.option("--unsandboxed", is_flag=True, help="Without namespaces and Landlock; the matrix says so.")
    @card_options
    @_json
    @_root
    def command(
        target: str, budget: str | None, max_call: float, unsandboxed: bool, uuid: str | None, lock_dir: Path | None,
        transport: Literal["ipc", "host"], as_json: bool, root: Path,
    ) -> int:  # fmt: skip
        from solbench.evaluate.session import Session
        from solbench.pipeline import parse_duration
        from solbench.release import readiness
        from solbench.workspace import Workspace

        begun_s = time.monotonic()
        workspace = Workspace.at(root)
        sections = _sections(workspace)
        _require_target(target, readiness.targets_of(sections))
        cases = readiness.cases(sections, workspace.store.load, target, level)
        limit_s = parse_duration(budget) if budget is not None else None
        with Session(
            target=target, unsandboxed=unsandboxed, uuid=uuid, lock_dir=lock_dir, transport=transport
        ) as session:  # fmt: skip
            left_s = None if limit_s is None else max(begun_s + limit_s - time.monotonic(), 0.0)
            records = _run(workspace, cases, target, level, session, max_call, left_s)
        if records is None:
            return 3
        matrix = readiness.of_records(sections, workspace.store.load, target, level, *records)
        path = readiness.write(matrix, workspace.root / "readiness")
        if not as_json:
            click.echo(f"{path}; now run `solbench repro`, and commit the matrix with what it changes")
        return _show(matrix, as_json)

    return command


def _run(
    workspace: Workspace, cases: Sequence[Case], target: str, level: str, session: Any, max_call_s: float,
    budget_s: float | None,
) -> Any:  # fmt: skip
    """Header and records of a set that has all cases, or None where time ran out; it is gone on with the next time."""
    from solbench import canonical
    from solbench.cli import printable
    from solbench.evaluate.identity import harness_digest
    from solbench.evaluate.measure import measure
    from solbench.evaluate.protocols import protocol
    from solbench.evaluate.recording import read_set

    # One checked call in one process; nothing is timed that anybody compares.
    once = protocol("quick", samples=1, max_call_s=max_call_s).model_copy(update={"batches": None, "preamble_s": None})
    folder = workspace.checkout / ".solbench" / "readiness"
    # What an earlier run of other code, or of other workloads, has left is not gone on with.
    wanted = [[*case.key, case.instance, case.candidate] for case in cases]
    key = canonical.derived_key("readiness", [harness_digest(), max_call_s, wanted])
    out = folder / f"{target}-{level}-{key[:16]}.jsonl"
    say = lambda text: click.echo(f"  {printable(text)}", err=True)  # noqa: E731
    problems, names = _problems(workspace, cases)
    summary = measure(
        problems, out, target=target, protocol=once, candidates=names, session=session, budget_s=budget_s, progress=say
    )
    click.echo(printable(f"{target} {level}: {summary}"), err=True)
    if summary.left:
        return None
    found = read_set(out)
    for path in folder.glob(f"{target}-{level}-*"):
        path.unlink()
    return found


def _problems(workspace: Workspace, cases: Iterable[Case]) -> tuple[list[Problem], list[str]]:
    """The problems of ``cases`` with those workloads and solutions only, and the solutions' names."""
    from dataclasses import replace

    from solbench.corpus.configured import release_corpus

    wanted = {case.key for case in cases}
    found = []
    for problem in release_corpus(workspace.problems, workspace.parameters().capacity_gib).problems:
        own = {(uuid, solution) for key, uuid, solution in wanted if key == problem.key}
        workloads = tuple(w for w in problem.workloads if any(uuid == w.uuid for uuid, _ in own))
        solutions = tuple(s for s in problem.solutions if any(name == s.name for _, name in own))
        if workloads:
            found.append(replace(problem, workloads=workloads, solutions=solutions))
    return found, sorted({solution for _, _, solution in wanted})


def _sections(workspace: Workspace) -> dict[str, Any]:
    return {stage: workspace.store.index(stage) for stage in ("corpus", "workloads", "bounds", "code")}


def _require_target(target: str, known: list[str]) -> None:
    from solbench.errors import InputError

    if target not in known:
        raise InputError(f"--target {target}", f"is not in this release; it has {', '.join(known) or 'none'}")


def _show(matrix: Readiness, as_json: bool) -> int:
    """Print a matrix, its digest and n of N; 0 where all is ready."""
    from solbench.cli import printable
    from solbench.store import Descriptor, encode

    digest = Descriptor.of("readiness", encode("readiness", matrix.as_dict())).digest
    if as_json:
        click.echo(json.dumps({"digest": digest, **matrix.as_dict()}, indent=2, sort_keys=True))
        return 0 if matrix.ready == matrix.total else 1
    missing = [item for item in matrix.items if not item.ready]
    for item in missing[:_LINES]:
        click.echo(printable(f"  {'/'.join(part for part in item.key if part)}: {item.reason}"))
    if len(missing) > _LINES:
        click.echo(f"  ... and {len(missing) - _LINES} more; --json prints them all")
    click.echo(f"{matrix.target} {matrix.level}: {matrix.ready} of {matrix.total} ready, {digest}")
    return 1 if missing else 0


for _level, _text in (
    ("canary", "Run the smallest and the largest workload of each problem, once each, checked."),
    ("full", "Run every workload once, checked."),
):
    _rest = (
        "\n\nBy the baseline and every solution for the target, on this machine, which must have it. Writes "
        "readiness/TARGET/"
        + _level
        + ".json when all was run; a run that was killed, or whose --budget was spent, goes "
        "on when it is called again. Exit code: 0 all ready, 1 something is not, 3 something is left to run, 4 the "
        "target is not here."
    )
    qualify.add_command(_runs(_level, _text + _rest))  # type: ignore[arg-type]
