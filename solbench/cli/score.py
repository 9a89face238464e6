"""``solbench score``: the scores of a store, always n of N."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--store", "root", type=click.Path(path_type=Path), default=Path("store"), show_default=True)
@click.option("--target", metavar="NAME", help="Only this target.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def score(root: Path, target: str | None, as_json: bool) -> None:
    """Print the entries of a release and their scores by problem.

    S is 0.5 at the baseline's time and 1 at the bound. A workload counts when it was scored or failed; everything else
    is left out, and how much is left out stands beside every number.
    """
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
    for problem in entry["problems"]:
        value = "     -" if problem["s"] is None else f"{problem['s']:.4f}"
        click.echo(printable(f"    {value}  {problem['n']} of {problem['total']}  {problem['definition']}"))
