"""The bytes of every file of a site: rendered by as many processes as there are processors, or known from before.

A page of a problem, a workload or a solution depends on what the release has of its problem, and on little else. It is
rendered for a stand-in of the release's digest, which then gives way to the digest: so that it can be taken over into
the next release, where nothing of its problem has changed.
"""

from __future__ import annotations

import importlib.metadata
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
from solbench.site import compare, hardware, pages, problem, solution, status, tables, text, workload
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
# Kinds of pages that depend on one problem.
FIRST: Final = ("index", "")
OF_A_PROBLEM: Final = ("problem", "workload", "solution")
_LIBRARIES: Final = ("jinja2", "markupsafe", "pygments", "grandalf")
_SHORT: Final = 12
# For fewer pages a copy of this process costs more than it brings.
FEWEST: Final = 4

Files = dict[str, bytes]


@dataclass(frozen=True)
class Site:
    """What a page is rendered from. ``stand_in``: the release as pages of a problem know it."""

    book: Book
    objects: Objects
    paths: Mapping[Page, str]
    jinja: Environment
    stand_in: Descriptor


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


def files(book: Book, objects: Objects, templates: Path, memo: Memo | None) -> Files:
    """Every page and the tables beside it, by path. ``memo``: where pages are kept for the next time, if anywhere."""
    code = code_digest([*map(_ROOT.joinpath, CODE), *sorted(templates.glob("*.html"))], map(_version, _LIBRARIES))
    root = book.release.descriptor
    stand_in = Descriptor(root.kind, f"blake3:{canonical.derived_key('site stand-in', code)}", root.size)
    # It stands where the release's object does.
    objects.known[stand_in.digest] = f"{objects.base.replace('{stage}', 'release')}/{stand_in.path}"
    site = Site(book, objects, paths(book), environment(templates), stand_in)
    found: dict[Page, Mapping[str, str]] = {}
    wanted = list(site.paths)
    keys = _keys(site, code) if memo is not None else {}
    for page, key in keys.items():
        kept = memo.get(_place(site, page)) if memo is not None else None
        if isinstance(kept, dict) and kept.get("key") == key:
            found[page] = kept["files"]
    missing = [page for page in wanted if page not in found and page != FIRST]
    rendered = shares.over(missing, lambda page: _rendered(site, page), shares.workers_for(len(missing), FEWEST))
    for page, made in zip(missing, rendered):
        # What went wrong in another process goes wrong here as well, and says what it is.
        found[page] = made if made is not None else _files_of(site, page)
        if memo is not None and page in keys:
            memo.put(_place(site, page), {"key": keys[page], "files": made})
    result: Files = {}

    def add(page: Page, made: Mapping[str, str]) -> None:
        for name, data in _of_this_release(made, site):
            if name in result:
                raise SolbenchError(f"site: two files would be named {name!r}")
            result[name] = data

    for page in wanted:
        if page != FIRST:
            add(page, found[page])
    # The first page offers the tables of the others, so it comes last.
    offered = [
        Download.of(name, result[name])
        for page in wanted
        if page[0] not in (*OF_A_PROBLEM, "index")
        for name in _tables_of(found[page])
    ]
    add(FIRST, _files_of(site, FIRST, offered))
    return result


def _tables_of(made: Mapping[str, str]) -> list[str]:
    return [name for name in made if not name.endswith(".html")]


def _version(library: str) -> str:
    return f"{library} {importlib.metadata.version(library)}"


def _place(site: Site, page: Page) -> str:
    """A page is kept in the place of its former self, so that what is kept does not grow with every release."""
    return canonical.derived_key("site page", [site.book.release.value.name, site.paths[page]])


def _rendered(site: Site, page: Page) -> dict[str, str] | None:
    """The text of a page's files by path; None where it cannot be rendered, for an error crosses no process."""
    with suppress(SolbenchError):
        return _files_of(site, page)
    return None


def _files_of(site: Site, page: Page, downloads: Sequence[Download] = ()) -> dict[str, str]:
    kind, key = page
    path = site.paths[page]
    root = site.stand_in if kind in OF_A_PROBLEM else site.book.release.descriptor
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
    return {path: made} | {name: data.decode() for name, data in beside.items()}


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


def _of_this_release(made: Mapping[str, str], site: Site) -> Iterable[tuple[str, bytes]]:
    """A page's files with the stand-in replaced by the release, and the digests of its tables by what they are then."""
    old, new = site.stand_in, site.book.release.descriptor
    path = next(name for name in made if name.endswith(".html"))
    page = _replaced(made[path], old.digest, new.digest)
    for name, content in made.items():
        if name == path:
            continue
        data, known = content.encode(), canonical.digest(content.encode())
        if old.digest in content:
            data = content.replace(old.digest, new.digest).encode()
            page = _replaced(page, known, canonical.digest(data))
        yield name, data
    yield path, page.encode()


def _replaced(page: str, old: str, new: str) -> str:
    """Wherever a page writes a digest: whole, as the path of an object, or its first digits."""
    one, other = old.removeprefix("blake3:"), new.removeprefix("blake3:")
    page = page.replace(one, other).replace(f"{one[:2]}/{one[2:]}", f"{other[:2]}/{other[2:]}")
    return page.replace(f"{one[:_SHORT]}…", f"{other[:_SHORT]}…")


def _keys(site: Site, code: str) -> dict[Page, str]:
    """For every page of a problem, the identity of all that it is rendered from."""
    book = site.book
    shared = {
        "code": code,
        "base": site.objects.base,
        "release": book.release.value.name,
        "size": book.release.descriptor.size,
        "paths": {f"{kind} {key}": path for (kind, key), path in site.paths.items() if kind not in OF_A_PROBLEM},
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
                "paths": {f"{kind} {key}": site.paths[kind, key] for kind, key in own},
                "order": [[workload.record.name, dict(workload.slots)] for workload in found.workloads],
                "records": sorted(book.digests_of(found)),
            },
        )
        keys |= {page: f"{inputs} {page[0]} {page[1]}" for page in own}
    return keys


def _pages_of(found: ProblemRecords) -> list[Page]:
    workloads = [("workload", one.record.name) for one in found.workloads]
    return [("problem", found.key), *workloads, *(("solution", one.name) for one in found.solutions)]
