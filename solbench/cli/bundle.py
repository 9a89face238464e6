"""``solbench bundle``: one archive that anyone can verify."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solbench.errors import InputError

if TYPE_CHECKING:
    from solbench.release.bundle import ArchiveFormat, Bundle
    from solbench.workspace import Workspace

FORMATS: dict[str, ArchiveFormat | None] = {"zip": "zip", "tar": "tar", "tar.gz": "tar.gz", "directory": None}
_SUFFIXES = {".zip": "zip", ".tar": "tar", ".tar.gz": "tar.gz", ".tgz": "tar.gz"}


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
@click.option("--format", "stated", type=click.Choice(list(FORMATS)), help="[default: as --output ends, else zip]")
@click.option("--output", type=click.Path(path_type=Path), help="Where to.  [default: release/<name>.<format>]")
def bundle(root: Path, stated: str | None, output: Path | None) -> None:
    """Write the release of a DVC root, its site, checksums and provenance as one deterministic archive.

    An archive's own digest stands in <archive>.b3 beside it. The last line printed is the command that verifies it.
    """
    from solbench.workspace import Workspace

    name_of_format = format_of(stated, output)
    form = FORMATS[name_of_format]
    workspace = Workspace.at(root)
    name = workspace.parameters().release
    out = output or workspace.root / "release" / (f"{name}.{form}" if form else name)
    written = pack(workspace, out, form)
    shown = out.resolve().relative_to(Path.cwd()) if out.resolve().is_relative_to(Path.cwd()) else out
    click.echo(f"{shown}: {written.objects} objects, {written.members} members, {written.size} bytes")
    click.echo(f"root: {written.root.digest}")
    click.echo(f"solbench verify {shown} --expect-root {written.root.digest}")


def pack(workspace: Workspace, out: Path, form: ArchiveFormat | None) -> Bundle:
    """Render the site of a DVC root and write all of its release to ``out``; ``form`` None: a directory."""
    from solbench.release.bundle import write_bundle, write_directory
    from solbench.release.provenance import predicate
    from solbench.site import render

    statement = predicate(workspace.checkout, workspace.root, workspace.store)
    with tempfile.TemporaryDirectory(prefix="solbench-site-") as folder:
        # The checkout's pages link to store/<stage>/objects; in a bundle the objects lie together.
        site = Path(folder) / "site"
        render(workspace.store.root, site, object_base="../objects", templates=workspace.checkout / "site_templates")
        if form is None:
            return write_directory(workspace.store, out, statement, site)
        return write_bundle(workspace.store, out, statement, site, form)


def format_of(stated: str | None, output: Path | None) -> str:
    """The format that was asked for, by name or by how ``output`` ends; :class:`InputError` where the two disagree."""
    ending = next((suffix for suffix in _SUFFIXES if output is not None and output.name.endswith(suffix)), None)
    if output is None:
        return stated or "zip"
    if ending is None and stated is None:
        raise InputError(str(output), f"ends in none of {', '.join(_SUFFIXES)}; name the format with --format")
    if ending is not None and stated is not None and _SUFFIXES[ending] != stated:
        raise InputError(str(output), f"ends in {ending}, but --format says {stated}; change one of the two")
    return stated or _SUFFIXES[ending or ""]
