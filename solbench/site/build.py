"""Writes every file of a site: rendered by as many processes as there are processors, or as kept from before.

A page of a problem, a workload or a solution depends on what the release has of its problem, and on little else. It is
rendered for a stand-in of the release's digest, which then gives way to the digest: so that it can be taken over into
the next release, where nothing of its problem has changed.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from solbench import canonical
from solbench.errors import SolbenchError
from solbench.memo import Memo, code_digest
from solbench.release import shares
from solbench.site import compare, hardware, markup, pages, problem, solution, status, tables, text, workload
from solbench.site.corpus import corpus_page
from solbench.site.index import Download, index_page
from solbench.site.links import Links, Objects, Page, paths
from solbench.site.records import Book, ProblemRecords
from solbench.site.target import target_page
from solbench.store import Descriptor

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
_ROOT: Final = Path(__file__).resolve().parents[2]
# What decides how a page reads, beside the templates: pages kept by other code are rendered again.
CODE: Final = (
    "solbench/site", "solbench/model", "solbench/canonical.py", "solbench/store.py", "solbench/release/schemas.py",
    "solbench/release/diff.py", "solbench/score/statistics.py", "solar/catalogue.py", "solar/einsum.py",
    "solar/graph.py", "solar/hardware.py",
)  # fmt: skip
FIRST: Final = ("index", "")
# Kinds of pages that depend on one problem.
OF_A_PROBLEM: Final = ("problem", "workload", "solution")
_LIBRARIES: Final = ("jinja2", "markupsafe", "pygments", "grandalf")
_SHORT: Final = 12
# Written where a page stands for one artifact; text cannot forge it, for its quotes are escaped.
_RECORD = b' data-record="'
# For fewer pages a copy of this process costs more than it brings.
FEWEST: Final = 4

Files = dict[str, bytes]


@dataclass(frozen=True)
class Site:
    """What pages are rendered from. ``keys``: of each page of a problem, the identity of all that it shows."""

    book: Book
    objects: Objects
    paths: Mapping[Page, str]
    jinja: Environment
    keys: Mapping[Page, str]

    def root(self, page: Page) -> Descriptor:
        """The release as ``page`` knows it: itself, or on a page of a problem what stands for it.

        That follows from all that the page shows, so nothing that is shown can spell it.
        """
        root = self.book.release.descriptor
        if page not in self.keys:
            return root
        stand_in = Descriptor(root.kind, f"blake3:{canonical.derived_key('site stand-in', self.keys[page])}", root.size)
        # It stands where the release's object does.
        self.objects.known[stand_in.digest] = f"{self.objects.base.replace('{stage}', 'release')}/{stand_in.path}"
        return stand_in


def environment(templates: Path) -> Environment:
    """Jinja as the pages need it: everything escaped, nothing undefined, hidden characters made visible."""
    jinja = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text.printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.globals |= markup.PIECES
    return jinja


@dataclass(frozen=True)
class Written:
    """A file of the site. ``records``: those that a page stands for, as the page spells them."""

    digest: str
    size: int
    records: tuple[str, ...]


def write(book: Book, objects: Objects, templates: Path, out: Path, memo: Memo | None) -> dict[str, Written]:
    """Write every page and the tables beside it below the folder ``out``; what was written, by path.

    ``memo``: where pages are kept for the next time, if anywhere. :class:`SolbenchError` where a page cannot be
    rendered or two files would have one name.
    """
    code = code_digest([*map(_ROOT.joinpath, CODE), *sorted(templates.glob("*.html"))], map(_version, _LIBRARIES))
    where = paths(book)
    site = Site(book, objects, where, environment(templates), _keys(book, objects.base, where, code))
    for folder in sorted({(out / path).parent for path in site.paths.values()}):
        folder.mkdir(parents=True, exist_ok=True)

    def one(page: Page) -> dict[str, Any]:
        return _write_page(site, page, memo, out)

    def tried(page: Page) -> dict[str, Any] | None:
        # An error crosses no process: it comes again in this one.
        with suppress(SolbenchError):
            return one(page)
        return None

    pages_ = [page for page in site.paths if page != FIRST]
    # Dealt in turn. This process has the first page still to come: another gets the long ones, which are at the front.
    pages_ = [*pages_[-1:], *pages_[:-1]]
    found: dict[str, Written] = {}
    offered = []
    for page, answer in zip(pages_, shares.over(pages_, tried, shares.workers_for(len(pages_), FEWEST))):
        made = _add(found, answer if answer is not None else one(page))
        if page[0] not in OF_A_PROBLEM:
            offered += [Download.of(name, found[name].digest, found[name].size) for name in made]
    # The first page offers the tables of the others, so it comes last.
    tables_ = [download for download in offered if not download.name.endswith(".html")]
    _add(found, _put(_files_of(site, FIRST, tables_), site, FIRST, out))
    return found


def _add(found: dict[str, Written], answer: Mapping[str, Any]) -> list[str]:
    """Take over the files of a page; returns their names."""
    for name, (digest, size) in answer["files"].items():
        if name in found:
            raise SolbenchError(f"site: two files would be named {name!r}")
        found[name] = Written(digest, size, tuple(answer["records"]) if name.endswith(".html") else ())
    return list(answer["files"])


def _write_page(site: Site, page: Page, memo: Memo | None, out: Path) -> dict[str, Any]:
    """Write a page, as it was kept or rendered; what :func:`_put` says of it."""
    key = site.keys.get(page)
    if memo is None or key is None:
        return _put(_files_of(site, page), site, page, out)
    made = _kept(memo.get_bytes(_place(site, page)), key)
    if made is None:
        made = _files_of(site, page)
        memo.put_bytes(_place(site, page), _packed(made, key))
    return _put(made, site, page, out)


def _put(made: Files, site: Site, page: Page, out: Path) -> dict[str, Any]:
    """Write a page's files as of this release; their digests and sizes, and the records that the page stands for."""
    written, records = {}, []
    for name, data in _of_this_release(made, site.root(page).digest, site.book.release.descriptor.digest):
        (out / name).write_bytes(data)
        written[name] = [canonical.digest(data), len(data)]
        if name.endswith(".html"):
            records = [piece[: piece.index(b'"')].decode() for piece in data.split(_RECORD)[1:]]
    return {"files": written, "records": records}


def _packed(made: Files, key: str) -> bytes:
    """A line that says what follows, and the files."""
    head = {"key": key, "files": [[name, len(data)] for name, data in made.items()]}
    return b"".join([canonical.written(head).encode(), b"\n", *made.values()])


def _kept(packed: bytes | None, key: str) -> Files | None:
    """The files that were packed with ``key``; None where it is another."""
    if packed is None:
        return None
    line, _, rest = packed.partition(b"\n")
    head = json.loads(line)
    if head["key"] != key:
        return None
    made, start = {}, 0
    for name, length in head["files"]:
        made[name] = rest[start : start + length]
        start += length
    return made


def _version(library: str) -> str:
    return f"{library} {importlib.metadata.version(library)}"


def _place(site: Site, page: Page) -> str:
    """A page is kept in the place of its former self, so that what is kept does not grow with every release."""
    return canonical.derived_key("site page", [site.book.release.value.name, site.paths[page]])


def _files_of(site: Site, page: Page, downloads: Sequence[Download] = ()) -> Files:
    kind, key = page
    path = site.paths[page]
    root = site.root(page)
    links = Links(site.objects, site.paths, path)

    def linked(name: str, beside: list[tables.File]) -> str:
        return site.jinja.get_template("table_files.html").render(name=name, files=beside)

    title, content = _content(site.book, links, kind, key, downloads)
    context = pages.base(site.book, links, kind, key, title, root) | content
    try:
        made = site.jinja.get_template(f"{kind}.html").render(context, csp=CSP)
        made, beside = tables.publish(made, path, root.digest, linked)
    except TemplateError as error:
        raise SolbenchError(f"site: {kind}.html for {key or 'the release'}: {error}") from None
    return {path: made.encode(), **beside}


def _content(
    book: Book, links: Links, kind: str, key: str, downloads: Sequence[Download]
) -> tuple[str, dict[str, Any]]:
    """Title and content of one page."""
    match kind:
        case "index":
            return f"Release {book.release.value.name}", index_page(book, links, downloads)
        case "target":
            return key, target_page(book, links, book.target(key))
        case "problem":
            found = book.problem(key)
            return found.record.value.name, problem.problem_page(book, links, found)
        case "workload":
            found, one = book.workload(key)
            return f"{found.record.value.name}, {one.uuid}", workload.workload_page(book, links, found, one)
        case "solution":
            found, record = book.solution(key)
            title = f"{record.value.name} for {found.record.value.name}"
            return title, solution.solution_page(book, links, found, record)
    title, build = SINGLE_PAGES[kind]
    return title, build(book, links)


SINGLE_PAGES: Final[Mapping[str, tuple[str, Callable[[Book, Links], dict[str, Any]]]]] = {
    "corpus": ("Corpus", corpus_page),
    "hardware": ("Hardware", hardware.hardware_page),
    "status": ("Status", status.status_page),
    "compare": ("Compare", compare.compare_page),
    "method": ("Method", pages.method_page),
    "verify": ("Verify", pages.verify_page),
}


def _of_this_release(made: Files, old: str, new: str) -> Iterable[tuple[str, bytes]]:
    """A page's files with the release ``old`` replaced by ``new``, and its tables' digests by what they are then."""
    if old == new:
        yield from made.items()
        return
    path = next(name for name in made if name.endswith(".html"))
    page = _replaced(made[path], old, new)
    for name, data in made.items():
        if name == path:
            continue
        if old.encode() in data:
            known, data = canonical.digest(data), data.replace(old.encode(), new.encode())
            page = _replaced(page, known, canonical.digest(data))
        yield name, data
    yield path, page


def _replaced(page: bytes, old: str, new: str) -> bytes:
    """Wherever a page writes a digest: whole, as the path of an object, or its first digits."""
    one, other = old.removeprefix("blake3:"), new.removeprefix("blake3:")
    for form in (lambda d: d, lambda d: f"{d[:2]}/{d[2:]}", lambda d: f"{d[:_SHORT]}…"):
        page = page.replace(form(one).encode(), form(other).encode())
    return page


def _keys(book: Book, base: str, where: Mapping[Page, str], code: str) -> dict[Page, str]:
    """For every page of a problem, the identity of all that it is rendered from."""
    shared = {
        "code": code,
        "base": base,
        "release": book.release.value.name,
        "size": book.release.descriptor.size,
        "paths": {f"{kind} {key}": path for (kind, key), path in where.items() if kind not in OF_A_PROBLEM},
        "targets": [target.state.as_dict() for target in book.targets],
        "hardware": [target.hardware.descriptor.digest if target.hardware else None for target in book.targets],
    }
    common = canonical.derived_key("site shared", shared)
    keys: dict[Page, str] = {}
    for found in book.problems:
        own = _pages_of(found)
        inputs = canonical.derived_key(
            "site problem",
            {
                "shared": common,
                "paths": {f"{kind} {key}": where[kind, key] for kind, key in own},
                "order": [[workload.record.name, dict(workload.slots)] for workload in found.workloads],
                "records": sorted(book.digests_of(found)),
            },
        )
        keys |= {page: f"{inputs} {page[0]} {page[1]}" for page in own}
    return keys


def _pages_of(found: ProblemRecords) -> list[Page]:
    workloads = [("workload", one.record.name) for one in found.workloads]
    return [("problem", found.key), *workloads, *(("solution", one.name) for one in found.solutions)]
