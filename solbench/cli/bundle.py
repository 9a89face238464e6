"""``solbench bundle``: one archive that anyone can verify."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
@click.option("--output", type=click.Path(path_type=Path), help="The archive.  [default: release/<name>.zip]")
@click.option("--directory", is_flag=True, help="Write a directory instead of an archive.")
def bundle(root: Path, output: Path | None, directory: bool) -> None:
    """Write the release of a DVC root, its site, checksums and provenance as one deterministic archive.

    The archive's own digest stands in <archive>.b3 beside it. The last line printed is the command that verifies it.
    """
    from solbench.release.bundle import write_bundle, write_directory
    from solbench.release.provenance import predicate
    from solbench.site import render
    from solbench.workspace import Workspace

    workspace = Workspace.at(root)
    name = workspace.parameters().release
    out = output or workspace.root / "release" / (name if directory else f"{name}.zip")
    write = write_directory if directory else write_bundle
    statement = predicate(workspace.checkout, workspace.root)
    with tempfile.TemporaryDirectory(prefix="solbench-site-") as folder:
        # The checkout's pages link to store/<stage>/objects; in a bundle the objects lie together.
        site = Path(folder) / "site"
        render(workspace.store.root, site, object_base="../objects", templates=workspace.checkout / "site_templates")
        written = write(workspace.store, out, statement, site)
    shown = out.resolve().relative_to(Path.cwd()) if out.resolve().is_relative_to(Path.cwd()) else out
    click.echo(f"{shown}: {written.objects} objects, {written.members} members, {written.size} bytes")
    click.echo(f"root: {written.root.digest}")
    click.echo(f"solbench verify {shown} --expect-root {written.root.digest}")
