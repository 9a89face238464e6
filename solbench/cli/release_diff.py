"""``solbench release diff``: what changed between two releases, number by number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from solbench.release.diff import Change, Diff, Field, Side, StageDiff

_SHOWN = 20


@click.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--all", "everything", is_flag=True, help=f"Every name, not the first {_SHOWN} of a stage.")
@click.option("--exit-code", is_flag=True, help="Exit code 1 where they differ.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: every changed number, old and new.")
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("."), help="The checkout of git: revisions.  [default: .]"
)
def diff(a: str, b: str, everything: bool, exit_code: bool, as_json: bool, root: Path) -> int:
    """Compare release A with release B.

    Each is a bundle (archive or directory), a folder with a store/ (a checkout, or its local/) or that store/ itself,
    or git:REV, a revision of the checkout: its indexes come from git, its objects from the store on disk as far as
    they are still there. Each object that is read is checked against its hash; whether a release is sound says
    `solbench verify`. Nothing is written or run.
    """
    from solbench.release.diff import diff as compare
    from solbench.release.reading import opened

    with opened(a, root) as old, opened(b, root) as new:
        found = compare(old, new)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2, sort_keys=True))
    elif not found.differs:
        click.echo(f"identical: {found.a.root or found.b.root or 'no root, the same indexes'}")
    else:
        for line in _lines(found, None if everything else _SHOWN):
            click.echo(line)
    return 1 if exit_code and found.differs else 0


def _lines(found: Diff, most: int | None) -> Iterable[str]:
    yield _side("A", found.a)
    yield _side("B", found.b)
    yield from _release(found)
    for stage in found.stages:
        yield from _stage(stage, most)
    compared, total = found.compared
    if compared < total:
        yield f"{compared} of {total} changed artifacts compared: the content of the others is not here"


def _side(word: str, side: Side) -> str:
    return f"{word}  {side.root or 'no root'}  {_text(side.label)}"


def _release(found: Diff) -> Iterable[str]:
    from solbench.release.diff import target_words

    a, b = found.a.release, found.b.release
    if a is None or b is None:
        yield "what the roots say of targets and corpora is not here"
        return
    for name in ("name", "corpora", "problems", "workloads"):
        yield f"{name:<10}{_pair(_plain(a[name]), _plain(b[name]))}"
    targets = [{target["target"]: _text(target_words(target)) for target in release["targets"]} for release in (a, b)]
    for name in sorted(targets[0].keys() | targets[1].keys()):
        yield f"{_text(name):<10}{_pair(targets[0].get(name, 'none'), targets[1].get(name, 'none'))}"


def _pair(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


def _stage(stage: StageDiff, most: int | None) -> Iterable[str]:
    from solbench.release.diff import named_by_hash

    words = ("added", "removed", "moved", "changed")
    counts = ", ".join(f"{len(getattr(stage, name))} {name}" for name in words if name != "moved" or stage.moved)
    unread = "" if stage.compared == len(stage.changed) else f" ({stage.compared} compared)"
    yield f"{stage.stage}: {counts}{unread}, {stage.same} same"
    # What an entry's scores add up to comes before them; what cannot be shown comes last.
    changed = sorted(stage.changed, key=lambda one: (bool(one.absent), one.new.kind != "entry"))
    rows = [_changed(change) for change in changed]
    rows += [f"  > {_text(old)} -> {_text(new)}" for old, new in stage.moved]
    for sign, names in (("+", stage.added), ("-", stage.removed)):
        hashed = [name for name in names if stage.stage == "code" and named_by_hash(name)]
        rows += [f"  {sign} {_text(name)}" for name in names if name not in set(hashed)]
        for kind in sorted({name.partition("/")[0] for name in hashed}):
            rows.append(f"  {sign} {sum(name.startswith(f'{kind}/') for name in hashed)} x {_text(kind)}")
    yield from rows[:most]
    if most is not None and len(rows) > most:
        yield f"  ... and {len(rows) - most} more (--all)"


def _changed(change: Change) -> str:
    if change.absent:
        which = "neither content is" if len(change.absent) == 2 else f"the {change.absent[0]} content is not"
        return f"  * {_text(change.name)}: {which} here"
    shown = "; ".join(map(_field, change.fields))
    return f"  * {_text(change.name)}: {shown}"


def _field(field: Field) -> str:
    old, new = _plain(field.old), _plain(field.new)
    if old == new:
        old, new = _text(repr(field.old)), _text(repr(field.new))
    ratio = field.ratio
    return f"{_text(field.name)} {old} -> {new}" + (f" (x{ratio:.4g})" if ratio is not None else "")


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_plain, value)) or "none"
    return _text(str(value))


def _text(value: str) -> str:
    from solbench.release.findings import escape

    return escape(value)
