"""``solbench store``: look into the artifacts of a release, and check them where they lie."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from solbench.release.reach import Catalogue, Named
    from solbench.store import Descriptor
    from solbench.workspace import Workspace

_BYTES = click.IntRange(min=1)
_root = click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_LINES = 20


@click.group()
def store() -> None:
    """Look into the store of a checkout. Nothing here writes, and no link below store/ is followed.

    An object is named by its logical name (STAGE:NAME where several stages have it), by its digest, or by the first
    digits of that.
    """


@store.command()
@click.argument("stage", required=False)
@click.option("--kind", help="Only artifacts of this kind.")
@_json
@_root
def ls(stage: str | None, kind: str | None, as_json: bool, root: Path) -> None:
    """List what the indexes name, of all stages or of STAGE: digest, size in bytes, kind, name."""
    from solbench.errors import InputError

    found = _catalogue(_workspace(root))
    if stage is not None and stage not in found.indexes:
        raise InputError(stage, f"no such stage; there are {', '.join(sorted(found.indexes))}")
    everything = list(found.entries())
    entries = [e for e in everything if stage in (None, e.stage) and kind in (None, e.descriptor.kind)]
    if as_json:
        rows = [{"stage": e.stage, "name": e.name, **e.descriptor.as_dict()} for e in entries]
        _print_json({"entries": rows, "shown": len(rows), "total": len(everything)})
        return
    for entry in entries:
        click.echo(_line(_described(entry.descriptor), str(entry)))
    size = sum({e.descriptor.digest: e.descriptor.size for e in entries}.values())
    click.echo(f"{len(entries)} of {len(everything)} entries, {size} bytes")


@store.command()
@click.argument("name", metavar="NAME|HASH")
@click.option("--pretty", is_flag=True, help="Indent JSON; what a terminal might act on is escaped.")
@_root
def cat(name: str, pretty: bool, root: Path) -> None:
    """Print one object, its hash checked first: the bytes as stored, so that `b3sum` gives its name.

    A terminal gets JSON with everything that it might act on escaped, and raw objects not at all.
    """
    from solbench import canonical
    from solbench.errors import InputError, IntegrityError
    from solbench.release import reach
    from solbench.store import RAW_KINDS

    found = _catalogue(_workspace(root))
    digest = reach.find(found, name)
    entry = found.descriptor(digest)
    path, _, data = reach.hashed(found, digest)
    value = None
    if entry is None or entry.kind not in RAW_KINDS:
        try:
            value = canonical.loads(data or b"", path)
        except IntegrityError:
            if entry is not None and data is not None:
                raise
    terminal = sys.stdout.isatty()
    if (pretty or terminal) and value is None:
        raise InputError(name, "is no JSON of a size to show; send it to a file or a pipe, without --pretty")
    if pretty:
        click.echo(_ascii_json(value, 2))
    elif terminal:
        click.echo(_ascii_json(value, None))
    elif data is not None:
        sys.stdout.buffer.write(data)
    else:
        _stream(found, path, digest)


@store.command()
@click.argument("name", metavar="[HASH]", required=False)
@click.option("--depth", type=click.IntRange(min=0), help="Levels below it.  [default: 1 from the release, else all]")
@_json
@_root
def tree(name: str | None, depth: int | None, as_json: bool, root: Path) -> int:
    """Show what an object refers to, or the release, each object once. Exit 1 if one is missing or damaged."""
    from solbench.errors import InputError
    from solbench.release import reach

    found = _catalogue(_workspace(root))
    if name is not None:
        top = reach.reference(found, reach.find(found, name))
    elif found.release is not None:
        top = found.release
    else:
        raise InputError(str(found.root), "has no release; name an object")
    levels = depth if depth is not None else 1 if top == found.release else sys.maxsize
    nodes = reach.tree(found, top, levels)
    bad = sum(node.missing is not None for node in nodes)
    if as_json:
        rows = [
            {**n.descriptor.as_dict(), "depth": n.depth, "parent": n.parent, "missing": n.missing, "not_shown": n.below}
            for n in nodes
        ]
        _print_json({"objects": rows, "readable": len(nodes) - bad, "total": len(nodes)})
        return 1 if bad else 0
    for node in nodes:
        names = [str(entry) for entry in found.named.get(node.descriptor.digest, ())]
        note = f"  ({node.missing})" if node.missing else f"  (and {node.below} references)" if node.below else ""
        # A chain of references may be as long as the store is large.
        click.echo("  " * min(node.depth, 40) + _line(_described(node.descriptor), ", ".join(names[:1]) + note))
    click.echo(f"{len(nodes) - bad} of {len(nodes)} objects can be read, {sum(n.descriptor.size for n in nodes)} bytes")
    return 1 if bad else 0


@store.command()
@click.option("--max-manifest", type=_BYTES, default=64 << 20, show_default=True, help="Bytes of one JSON object.")
@click.option("--max-object", type=_BYTES, default=8 << 30, show_default=True, help="Bytes of one object.")
@click.option("--max-total", type=_BYTES, default=256 << 30, show_default=True, help="Bytes of all objects.")
@_json
@_root
def fsck(max_manifest: int, max_object: int, max_total: int, as_json: bool, root: Path) -> int:
    """Check the whole store: files and their places, hashes, canonical form, kinds, indexes, references.

    One line a finding, with a stable code. Exit code: 0 nothing found, 1 something is wrong, 3 could not decide.
    """
    from solbench.release.fsck import fsck as check
    from solbench.release.source import Limits

    limits = Limits(manifest_bytes=max_manifest, object_bytes=max_object, total_bytes=max_total)
    report = check(_workspace(root).store.root, limits)
    if as_json:
        _print_json(report.as_dict())
        return report.exit_code
    for finding in report.findings:
        parts = [f"expected {finding.expected}"] if finding.expected is not None else []
        parts += [f"found {finding.found}"] if finding.found is not None else []
        click.echo(f"{finding.code}  {finding.path}" + (f": {', '.join(parts)}" if parts else ""))
    if report.more:
        click.echo(f"... and {report.more} more")
    verdict = {"verified": "ok", "bad": "BAD", "undecided": "CANNOT DECIDE", "unsupported": "UNSUPPORTED"}
    click.echo(
        f"{report.sound} of {report.objects} objects sound, {report.present} of {report.entries} index entries, "
        f"{report.references} references, {report.bytes} bytes: {verdict[report.verdict]}"
    )
    return report.exit_code


@store.command()
@click.option("--dry-run", is_flag=True, help="List; the only thing that this command does.")
@_json
@_root
def gc(dry_run: bool, as_json: bool, root: Path) -> None:
    """List what no index and no release needs, below store/ and in the memo, with bytes. Deletes nothing.

    Store folders are DVC's: `solbench repro` writes a stage anew, `dvc gc` empties the cache. The memo may be deleted
    at any time; what is missing there is computed again.
    """
    from solbench.errors import InputError
    from solbench.release import garbage

    if not dry_run:
        raise InputError("store gc", "only --dry-run exists; deleting is DVC's: see `dvc gc --help`")
    workspace = _workspace(root)
    found = _catalogue(workspace)
    # One memo serves the checkout and local/.
    others = [path for path in (workspace.checkout, workspace.checkout / "local") if path != workspace.root]
    stores = [found, *(_catalogue(_workspace(path)) for path in others if any((path / "store").glob("*.json")))]
    sweeps = [("store", garbage.in_store(found)), (".solbench/memo", garbage.in_memo(workspace.memo, stores))]
    if as_json:
        _print_json({name: sweep.as_dict() for name, sweep in sweeps})
        return
    for name, sweep in sweeps:
        for one in sweep.garbage:
            click.echo(_line(f"{one.size:>10}  {name}/{one.path}", one.reason))
    for name, sweep in sweeps:
        click.echo(
            f"{name}: {len(sweep.garbage)} of {sweep.files} files not needed, "
            f"{sweep.garbage_bytes} of {sweep.bytes} bytes"
        )


@store.command()
@click.argument("name", metavar="HASH|PREFIX")
@click.option("--all", "everything", is_flag=True, help=f"Every line, not {_LINES} a level.")
@_json
@_root
def why(name: str, everything: bool, as_json: bool, root: Path) -> int:
    """Say who needs an object: which index names it, what refers to it up to the release, which pages show it.

    Exit code: 0 told, 2 no such object or several, 3 some objects could not be read, so that the answer has gaps.
    """
    from solbench.release import reach
    from solbench.site.shown import need

    workspace = _workspace(root)
    found = _catalogue(workspace)
    told = need(found, reach.find(found, name), workspace.root / "site")
    code = 3 if told.unread else 0
    if as_json:
        _print_json(told.as_dict())
        return code
    limit = sys.maxsize if everything else _LINES
    click.echo(_line(_described(told.descriptor)))
    _print_part("named by", told.names, limit, "no index")
    if not told.levels:
        _print_part("referred to by", (), limit, "no object")
    for number, level in enumerate(told.levels, 1):
        title = "referred to by" if number == 1 else f"and these by ({number})"
        _print_part(title, (_line(_described(d), _first_name(found, d)) for d in level), limit, "")
    click.echo(f"needed by release: {told.release or 'none'}")
    _print_part("shown on", told.pages, limit, told.fault or "no page links to it")
    if told.through:
        _print_part("pages that link to what refers to it", told.through, limit, "")
    if told.unread:
        _print_part("could not be read", told.unread, limit, "")
    return code


def _workspace(root: Path) -> Workspace:
    from solbench.workspace import Workspace

    return Workspace.at(root)


def _catalogue(workspace: Workspace) -> Catalogue:
    from solbench.release import reach

    return reach.catalogue(workspace.store.root)


def _stream(found: Catalogue, path: str, digest: str) -> None:
    """A file too large to be held, checked once more on its way out."""
    from blake3 import blake3

    from solbench.errors import IntegrityError
    from solbench.release import inventory

    hasher = blake3()
    for piece in inventory.chunks(found.root, path):
        hasher.update(piece)
        sys.stdout.buffer.write(piece)
    if f"blake3:{hasher.hexdigest()}" != digest:
        raise IntegrityError(f"{found.root / path}: changed while it was printed; throw away what came out")


def _first_name(found: Catalogue, descriptor: Descriptor) -> str:
    names: tuple[Named, ...] = found.named.get(descriptor.digest, ())
    return str(names[0]) if names else ""


def _described(descriptor: Descriptor) -> str:
    return f"{descriptor.digest}  {descriptor.size:>9}  {descriptor.kind or 'unknown'}"


def _print_part(title: str, lines: Iterable[str], limit: int, none: str) -> None:
    rows = list(lines)
    click.echo(f"{title}: {len(rows)}" if rows else f"{title}: {_line(none)}")
    for row in rows[:limit]:
        click.echo(f"  {_line(row)}")
    if len(rows) > limit:
        click.echo(f"  ... {limit} of {len(rows)}; --all prints the rest")


def _line(*texts: str) -> str:
    """One line of printable ASCII, whatever the texts hold."""
    joined = "  ".join(text for text in texts if text)
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in joined)


def _ascii_json(value: Any, indent: int | None) -> str:
    """JSON of printable ASCII; the one control character that JSON leaves as it is stands in strings only."""
    return json.dumps(value, indent=indent, sort_keys=True).replace("\x7f", "\\u007f")


def _print_json(value: Any) -> None:
    click.echo(_ascii_json(value, 2))
