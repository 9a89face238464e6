"""``solbench score``: the scores of a store, always n of N, and whether one is official."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from solbench.release.official import Official


@click.group(invoke_without_command=True)
@click.option("--store", "root", type=click.Path(path_type=Path), default=Path("store"), show_default=True)
@click.option("--target", metavar="NAME", help="Only this target.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
@click.pass_context
def score(context: click.Context, root: Path, target: str | None, as_json: bool) -> None:
    """Print the entries of a release and their scores by problem.

    S is 0.5 at the baseline's time and 1 at the bound. A workload counts when it was scored or failed; everything else
    is left out, and how much is left out stands beside every number.
    """
    if context.invoked_subcommand is not None:
        return
    from solbench.errors import InputError
    from solbench.store import Store

    store = Store(root)
    entries = {name: value for name, _, value in store.items("scores", "entry")}
    bounded = [name for name in store.index("bounds") if name.startswith("hardware/")] if _has(root, "bounds") else []
    targets = sorted({value["target"] for value in entries.values()} | {n.removeprefix("hardware/") for n in bounded})
    if target is not None:
        if target not in targets:
            raise InputError("--target", f"{target!r} is not in this release; it has {', '.join(targets) or 'none'}")
        targets = [target]
    if as_json:
        chosen = {name: value for name, value in entries.items() if value["target"] in targets}
        click.echo(json.dumps({"schema": "solbench.scores.v1", "targets": targets, "entries": chosen}, indent=2))
        return
    for name in targets:
        rows = [value for _, value in sorted(entries.items()) if value["target"] == name]
        if not rows:
            click.echo(f"{name}: not timed, no entry")
        for row in sorted(rows, key=lambda row: (row["s"] is None, -(row["s"] or 0), row["name"])):
            _print_entry(row)


@score.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--target", metavar="NAME", help="Only entries of this target.")
@click.option("--entry", "name", metavar="NAME", help="Only the entry of this name.")
@click.option("--expect-root", metavar="HASH", help="The root that the bundle must have.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def official(bundle: Path, target: str | None, name: str | None, expect_root: str | None, as_json: bool) -> int:
    """Say whether the entries of a BUNDLE have an official score, and which condition fails where they have not.

    The bundle is verified first, whole; then each entry needs: the pinned corpus, the reference as baseline, a result
    for every workload, readiness, one environment and harness, the full protocol in the full sandbox, a declared clock
    policy, and clocks of baseline and candidate that were read and agree within 3 %. All of it is read from the bundle:
    no number can be handed in.

    Exit code: 0 every entry asked about is official, 1 one is not, or the bundle is bad; 3 and 4 as `solbench verify`.
    """
    from solbench.errors import InputError
    from solbench.release import official as scores
    from solbench.release import verify as verification

    found: list[Official] = []

    def examine(contents: Any) -> None:
        found.extend(scores.entries(contents.sections, contents.load, target, name))

    result = verification.verify(bundle, expect_root, examine=examine)
    if not result.exit_code and not found:
        asked = " ".join(part for part in (name and f"entry {name}", target and f"on {target}") if part)
        raise InputError(asked or str(bundle), "has no entry; nothing was timed, so there is no score")
    if as_json:
        document = {
            "schema": "solbench.official-score.v1",
            "verification": result.as_dict(),
            "entries": [one.as_dict() for one in found],
        }
        click.echo(json.dumps(document, indent=2, sort_keys=True))
    elif result.exit_code:
        click.echo(f"{result.verdict}: {result.root or 'no root'}: `solbench verify` says why; nothing is official")
    else:
        trust = "the expected root" if result.matches_expected else "no expected root was given"
        click.echo(f"verified {result.root} ({trust})")
        for one in found:
            _print_official(one)
    if result.exit_code:
        return result.exit_code
    return 0 if all(one.official for one in found) else 1


@score.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def status(root: Path, as_json: bool) -> None:
    """Report what a checkout really has towards official scores, target by target.

    Read from the store as it lies there; only `solbench score official`, on a bundle, says that a score is official.
    """
    from solbench.cli import printable
    from solbench.release.status import of_targets
    from solbench.workspace import Workspace

    found = of_targets(Workspace.at(root).store)
    if as_json:
        document = {"schema": "solbench.score-status.v1", "targets": [one.as_dict() for one in found]}
        click.echo(json.dumps(document, indent=2, sort_keys=True))
        return
    for one in found:
        click.echo(printable(f"{one.target}"))
        for line in one.lines:
            click.echo(printable(f"  {line}"))
        for entry in one.entries:
            wanting = [condition for condition in entry.conditions if not condition.holds]
            held = len(entry.conditions) - len(wanting)
            click.echo(printable(f"  entry {entry.entry.name}: {held} of {len(entry.conditions)} conditions hold"))
            for condition in wanting:
                click.echo(printable(f"    {condition.name}: {condition.found}"))


@score.command()
@click.option("--store", "root", type=click.Path(path_type=Path), default=Path("store"), show_default=True)
@click.option("--target", metavar="NAME", required=True, help="Of this target.")
@click.option(
    "--at-least",
    "least_us",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="US",
    help="Only workloads whose bound is at least so many microseconds.",
)
def headroom(root: Path, target: str, least_us: float) -> None:
    """Print how near the quickest candidates come to their bounds, a row a problem, as a table in Markdown.

    eager and best candidate are T_SOL / T at the median of the workloads; bandwidth and rate are what the bound counts
    over the measured time, at the problem's best workload, and their share of the peak.
    """
    from solbench.cli import printable
    from solbench.score.headroom import markdown, rows
    from solbench.store import Store

    for line in markdown(rows(Store(root), target, least_us * 1e-6)):
        click.echo(printable(line))


def _print_official(one: Official) -> None:
    from solbench.cli import printable

    entry = one.entry
    where = f"{entry.name} on {entry.target} ({', '.join(one.devices) or 'no device'})"
    if not one.official:
        click.echo(printable(f"NOT OFFICIAL  {where}"))
        for condition in one.conditions:
            click.echo(printable(f"  {'holds' if condition.holds else 'FAILS'}  {condition.name}: {condition.found}"))
        return
    counted = entry.scored + entry.failed
    clocks = "" if one.clocks == "locked" else ", clocks UNLOCKED"
    click.echo(
        printable(
            f"OFFICIAL  {where}: S {entry.s:.4f} [{entry.s_low:.4f}, {entry.s_high:.4f}], "
            f"{counted} of {entry.workloads} workloads, {entry.problem_n} of {entry.problem_total} problems, "
            f"{entry.protocol} protocol{clocks}"
        )
    )
    for condition in one.conditions:
        click.echo(printable(f"  holds  {condition.name}: {condition.found}"))
    words = ", ".join(f"{count} {label}" for label, count in entry.trust.items())
    click.echo(printable(f"  whose word: {words}"))


def _has(root: Path, stage: str) -> bool:
    return (root / f"{stage}.json").is_file()


def _print_entry(entry: dict[str, Any]) -> None:
    from solbench.cli import printable

    counted = entry["scored"] + entry["failed"]
    click.echo(printable(f"{entry['target']}  {entry['name']}  ({entry['protocol']} protocol)"))
    if entry["withheld"] is not None:
        click.echo(printable(f"  S withheld: {entry['withheld']}"))
    elif entry["s"] is None:
        click.echo("  S: nothing counts yet")
    else:
        click.echo(f"  S {entry['s']:.4f} [{entry['s_low']:.4f}, {entry['s_high']:.4f}]")
        beside = {
            "without launch-bound workloads": entry["s_without_launch_bound"],
            "geometric mean speed-up": entry["geometric_mean_speedup"],
            "fast_1": entry["fast_1"],
            "fast_2": entry["fast_2"],
        }
        click.echo("  " + ", ".join(f"{name} {'-' if v is None else format(v, '.4f')}" for name, v in beside.items()))
    click.echo(
        f"  {counted} of {entry['workloads']} workloads count, "
        f"{entry['problem_n']} of {entry['problem_total']} problems have one that counts"
    )
    states = ("scored", "failed", "audit", "too_narrow", "not_timed", "no_bound", "not_attempted")
    click.echo("  " + ", ".join(f"{state.replace('_', ' ')} {entry[state]}" for state in states if entry[state]))
    words = ", ".join(f"{count} {label}" for label, count in entry["trust"].items())
    click.echo(printable(f"  whose word: {words or 'nobody measured'}"))
    for problem in entry["problems"]:
        value = "     -" if problem["s"] is None else f"{problem['s']:.4f}"
        click.echo(printable(f"    {value}  {problem['n']} of {problem['total']}  {problem['definition']}"))
