"""``solbench bundle``: one archive that anyone can verify."""

from __future__ import annotations

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
    from solbench.workspace import Workspace

    workspace = Workspace.at(root)
    name = workspace.parameters().release
    out = output or workspace.root / "release" / (name if directory else f"{name}.zip")
    site = workspace.root / "site"
    write = write_directory if directory else write_bundle
    statement = predicate(workspace.checkout, workspace.root)
    written = write(workspace.store, out, statement, site if site.is_dir() else None)
    shown = out.resolve().relative_to(Path.cwd()) if out.resolve().is_relative_to(Path.cwd()) else out
    click.echo(f"{shown}: {written.objects} objects, {written.members} members, {written.size} bytes")
    click.echo(f"root: {written.root.digest}")
    click.echo(f"solbench verify {shown} --expect-root {written.root.digest}")
