"""Renders a release into a folder of static pages: no external request, readable from disk, the same bytes every time.

Needs neither PyTorch nor a device. A page that would lose or repeat a record refuses the whole site.
"""

from __future__ import annotations

import gc
import html
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.memo import Memo
from solbench.site import build, compare, text, verdict
from solbench.site.links import Objects
from solbench.site.reading import load
from solbench.site.records import Book
from solbench.store import Store
from solbench.workspace import replace_folder, write_file

SCHEMA: Final = "solbench.site.v1"
ASSETS: Final = ("site.css", "site.js", "icon.svg", "blake3.js", "bundle.js", "choose.js", "verify.js", "compare.js")


def render(
    store_root: Path,
    out: Path,
    *,
    object_base: str = "../objects",
    templates: Path | None = None,
    memo: Memo | None = None,
    compare_with: str | None = None,
) -> dict[str, Any]:
    """Write the site of the release below ``store_root`` to ``out`` and return the content of its ``site.json``.

    ``object_base``: address of the objects relative to ``out``; ``{stage}`` in it is replaced by the stage that holds
    the object (``../store/{stage}/objects`` in a checkout, ``../objects`` in a bundle). ``templates``: folder of the
    templates, else the checkout's ``site_templates``. ``memo``: where pages are kept between calls; it changes nothing
    but time. ``compare_with``: an earlier release, as :func:`solbench.release.reading.opened` takes one; the page
    Compare then says what changed since. ``out`` is replaced as a whole, last.

    Raises :class:`SolbenchError` where a record would be lost or repeated, an object is missing, or ``out`` holds
    something that is not a rendered site.
    """
    store_root, out = Path(store_root), Path(out)
    folder = _templates() if templates is None else templates
    if out.is_dir() and any(out.iterdir()) and not (out / "site.json").is_file():
        raise InputError(str(out), "exists and is no rendered site; name another folder, or remove it")
    with _seldom_collected():
        return _render(store_root, out, folder, object_base, memo, compare_with)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Of what is read and rendered nearly nothing is a cycle; looking for some takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _render(
    store_root: Path, out: Path, templates: Path, object_base: str, memo: Memo | None, compare_with: str | None
) -> dict[str, Any]:
    """As :func:`render`, with its arguments made plain."""
    book = load(Store(store_root), memo)
    if compare_with is not None:
        book = replace(book, since=compare.since(compare_with, store_root))
    assets = {f"assets/{name}": _asset(templates, name) for name in ASSETS}
    # What has been read stays to the end: the collector need not look at it, nor another process copy it.
    gc.freeze()
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        # Not synced one by one: a site that a power cut tore is found by its site.json and rendered again.
        written = build.write(book, Objects(book, store_root, object_base), templates, temporary, memo)
        _count_records(book, written)
        digests = {path: file.digest for path, file in written.items()}
        for path, data in assets.items():
            write_file(temporary / path, data)
            digests[path] = canonical.digest(data)
        manifest = {
            "schema": SCHEMA,
            "release": book.release.descriptor.as_dict(),
            "pages": {path: digests[path] for path in sorted(digests)},
        }
        write_file(temporary / "site.json", canonical.dumps(manifest))
        replace_folder(temporary, out)
    finally:
        rmtree(temporary, ignore_errors=True)
    return manifest


def _templates() -> Path:
    folder = Path(__file__).resolve().parents[2] / "site_templates"
    if not folder.is_dir():
        raise InputError(str(folder), "no templates; run in a checkout of the project, or pass --templates")
    return folder


def _asset(folder: Path, name: str) -> bytes:
    try:
        return (folder / "assets" / name).read_bytes()
    except FileNotFoundError:
        raise InputError(str(folder / "assets" / name), "is missing") from None


def _count_records(book: Book, written: Mapping[str, build.Written]) -> None:
    """Every definition, solution, workload, bound, score, verdict, code record and entry is on one page, once."""
    shown = Counter(html.unescape(name) for file in written.values() for name in file.records)
    expected = Counter(text.visible(name) for name in _expected(book))
    for name in sorted(shown.keys() | expected.keys()):
        if shown[name] != expected[name]:
            raise IntegrityError(
                f"site: {name!r} is shown {shown[name]} times, the release has it {expected[name]} times"
            )


def _expected(book: Book) -> Iterable[str]:
    for found in book.problems:
        yield found.record.name
        yield from (solution.name for solution in found.solutions)
        for workload in found.workloads:
            yield workload.record.name
            yield from (bound.name for bound in workload.bounds.values())
            yield from (score.name for scores in workload.scores.values() for score in scores)
            yield from (verdict.shown_name(one) for records in workload.verdicts.values() for one in records)
            yield from (code.name for codes in workload.code.values() for code in codes)
    for target in book.targets:
        yield from (entry.name for entry in target.entries)
