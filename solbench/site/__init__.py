"""Renders a release into a folder of static pages: no external request, readable from disk, the same bytes every time.

Needs neither PyTorch nor a device. A page that would lose or repeat a record refuses the whole site.
"""

from __future__ import annotations

import html
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from solbench import canonical
from solbench.errors import InputError, IntegrityError, SolbenchError
from solbench.site import compare, hardware, pages, problem, status, tables, text
from solbench.site.links import Links, Objects, paths
from solbench.site.records import Book, load
from solbench.store import Store
from solbench.workspace import replace_folder, write_file

SCHEMA: Final = "solbench.site.v1"
ASSETS: Final = ("site.css", "site.js", "icon.svg", "blake3.js", "bundle.js", "choose.js", "verify.js", "compare.js")
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
# Written by the templates where a page stands for one artifact; text cannot forge it, for its quotes are escaped.
_RECORD = re.compile(r' data-record="([^"]*)"')


def render(
    store_root: Path,
    out: Path,
    *,
    object_base: str = "../objects",
    templates: Path | None = None,
    compare_with: str | None = None,
) -> dict[str, Any]:
    """Write the site of the release below ``store_root`` to ``out`` and return the content of its ``site.json``.

    ``object_base``: address of the objects relative to ``out``; ``{stage}`` in it is replaced by the stage that holds
    the object (``../store/{stage}/objects`` in a checkout, ``../objects`` in a bundle). ``templates``: folder of the
    templates, else the checkout's ``site_templates``. ``compare_with``: an earlier release, as
    :func:`solbench.release.reading.opened` takes one; the page Compare then says what changed since. ``out`` is
    replaced as a whole, last.

    Raises :class:`SolbenchError` where a record would be lost or repeated, an object is missing, or ``out`` holds
    something that is not a rendered site.
    """
    store_root, out = Path(store_root), Path(out)
    folder = _templates() if templates is None else templates
    if out.is_dir() and any(out.iterdir()) and not (out / "site.json").is_file():
        raise InputError(str(out), "exists and is no rendered site; name another folder, or remove it")
    book = load(Store(store_root))
    if compare_with is not None:
        book = replace(book, since=compare.since(compare_with, store_root))
    files = _pages(book, folder, store_root, object_base)
    _count_records(book, files)
    files |= {f"assets/{name}": _asset(folder, name) for name in ASSETS}
    manifest = {
        "schema": SCHEMA,
        "release": book.release.descriptor.as_dict(),
        "pages": {path: canonical.digest(files[path]) for path in sorted(files)},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        for path, data in files.items():
            write_file(temporary / path, data)
        write_file(temporary / "site.json", canonical.dumps(manifest))
        replace_folder(temporary, out)
    finally:
        rmtree(temporary, ignore_errors=True)
    return manifest


def environment(templates: Path) -> Environment:
    """Jinja as the pages need it: everything escaped, nothing undefined, hidden characters made visible."""
    return Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text.printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


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


def _pages(book: Book, folder: Path, store_root: Path, object_base: str) -> dict[str, bytes]:
    """Bytes of every page, and of the tables beside it, by path."""
    jinja = environment(folder)
    where = paths(book)
    objects = Objects(book, store_root, object_base)
    files: dict[str, bytes] = {}

    def linked(name: str, beside: list[tables.File]) -> str:
        return jinja.get_template("table_files.html").render(name=name, files=beside)

    for (kind, key), path in where.items():
        links = Links(objects, where, path)
        title, content = _content(book, links, kind, key)
        context = pages.base(book, links, kind, key, title) | content
        try:
            page = jinja.get_template(f"{kind}.html").render(context, csp=CSP)
            page, beside = tables.publish(page, path, book.release.descriptor.digest, linked)
        except TemplateError as error:
            raise SolbenchError(f"site: {kind}.html for {key or 'the release'}: {error}") from None
        for name, data in ((path, page.encode()), *beside.items()):
            if name in files:
                raise SolbenchError(f"site: two files would be named {name!r}")
            files[name] = data
    return files


def _content(book: Book, links: Links, kind: str, key: str) -> tuple[str, dict[str, Any]]:
    """Title and content of one page."""
    match kind:
        case "index":
            return f"Release {book.release.value.name}", pages.index_page(book, links)
        case "corpus":
            return "Corpus", pages.corpus_page(book, links)
        case "hardware":
            return "Hardware", hardware.hardware_page(book, links)
        case "status":
            return "Status", status.status_page(book, links)
        case "compare":
            return "Compare", compare.compare_page(book, links)
        case "method":
            return "Method", pages.method_page(book, links)
        case "verify":
            return "Verify", pages.verify_page(book, links)
        case "target":
            return key, pages.target_page(book, links, book.target(key))
        case "problem":
            found = book.problem(key)
            return found.record.value.name, problem.problem_page(book, links, found)
    raise AssertionError(kind)


def _count_records(book: Book, files: dict[str, bytes]) -> None:
    """Every definition, solution, workload, bound, score, code record and entry stands on the pages exactly once."""
    found = (data.decode() for path, data in files.items() if path.endswith(".html"))
    shown = Counter(html.unescape(name) for page in found for name in _RECORD.findall(page))
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
            yield from (code.name for codes in workload.code.values() for code in codes)
    for target in book.targets:
        yield from (entry.name for entry in target.entries)
