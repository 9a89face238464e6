"""``solbench site``: render the static site of a store."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--store", type=click.Path(path_type=Path), default=Path("store"), help="The artifacts.  [default: store]"
)
@click.option("--output", type=click.Path(path_type=Path), default=Path("site"), help="The folder.  [default: site]")
@click.option("--objects", default="../objects", show_default=True, help="Where objects are, seen from the folder.")
@click.option("--templates", type=click.Path(path_type=Path), default=None, help="Another folder of templates.")
@click.option(
    "--memo", type=click.Path(path_type=Path), default=None,
    help="Where pages are kept for the next time.  [default: .solbench/memo, in a checkout]",
)  # fmt: skip
@click.option("--compare-with", metavar="OLD", help="An earlier release; the page Compare says what changed since.")
def site(
    store: Path, output: Path, objects: str, templates: Path | None, memo: Path | None, compare_with: str | None
) -> None:
    """Render the release below --store into --output, which is replaced as a whole.

    Pages need no web server and make no request. Numbers link to objects below --objects: in a bundle
    `../objects`, in a checkout `../store/{stage}/objects`. OLD is what `solbench release diff` takes: a bundle
    (archive or directory), a folder with a store/ or that store/ itself, or git:REV of the folder around --store.
    """
    from solbench.memo import Memo
    from solbench.site import render

    kept = Path(".solbench/memo") if memo is None and Path(".solbench").is_dir() else memo
    manifest = render(
        store,
        output,
        object_base=objects,
        templates=templates,
        memo=None if kept is None else Memo(kept),
        compare_with=compare_with,
    )
    click.echo(f"{output / 'index.html'}: {len(manifest['pages'])} files of release {manifest['release']['digest']}")
