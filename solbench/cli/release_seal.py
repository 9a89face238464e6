"""``solbench release seal``: the archive that is published, and the statement that nothing was wanting."""

from __future__ import annotations

from pathlib import Path

import click

from solbench.cli.bundle import FORMATS, format_of, pack

_ARCHIVES = [name for name, form in FORMATS.items() if form is not None]


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("."), help="The DVC root.  [default: .]")
@click.option("--format", "stated", type=click.Choice(_ARCHIVES), help="[default: as --output ends, else zip]")
@click.option("--output", type=click.Path(path_type=Path), help="Where to.  [default: release/<name>.<format>]")
def seal(root: Path, stated: str | None, output: Path | None) -> None:
    """Write the archive of a release with its seal, or say what keeps it from being sealed.

    The source must be committed, the store sound, and every target ready: the bound of each workload and the code of
    each candidate (static), and where there are times one run of everything (full). Then the archive is written,
    verified whole, and named by <archive>.seal.json: an in-toto statement with its digests, the root, the commit and
    what each target had shown. The seal comes last; a run that was killed leaves none, and the next begins anew.
    """
    from solbench.cli import printable
    from solbench.errors import InputError
    from solbench.pipeline import repro_lock
    from solbench.release import seal as seals
    from solbench.release.provenance import revision
    from solbench.workspace import Workspace

    name = format_of(stated, output)
    form = FORMATS[name]
    workspace = Workspace.at(root)
    out = output or workspace.root / "release" / f"{workspace.parameters().release}.{form}"
    commit, clean = revision(workspace.checkout)
    if commit is None or not clean:
        what = "is no git checkout" if commit is None else "has changes that are not committed"
        raise InputError(str(workspace.checkout), f"{what}; a seal names the commit that the release was built from")
    with repro_lock(workspace.checkout):
        sealed = seals.seal(workspace, out, commit, lambda path: pack(workspace, path, form))
    click.echo(printable(f"{sealed.path}: " + ("as it was" if sealed.again else "sealed")))
    click.echo(printable(f"  archive {sealed.bundle.path}, {sealed.bundle.size} bytes, {sealed.bundle.digest}"))
    click.echo(f"  root {sealed.bundle.root.digest}, {sealed.objects} objects, verified, not replayed")
    click.echo(f"  commit {commit}")
    for what, ready, total in sealed.readiness:
        click.echo(printable(f"  {what}: {ready} of {total} ready"))
