"""Every address on every page leads to a file or an element that is there, in a bundle and in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compared_releases import PREDICATE
from html_check import Found, read, unresolved
from page_kinds import build_site

from solbench.release import bundle
from solbench.site import render
from solbench.store import Store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the store ``new/store`` and its bundle ``own``."""
    root = tmp_path_factory.mktemp("links")
    site = build_site(root)
    bundle.write_directory(Store(root / "new/store"), root / "own", PREDICATE, site)
    return root


@pytest.fixture(scope="module")
def site(made: Path) -> Path:
    return made / "own/site"


def pages_below(folder: Path) -> dict[str, Found]:
    return {path.relative_to(folder).as_posix(): read(path.read_text()) for path in folder.rglob("*.html")}


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Found]:
    return pages_below(site)


def test_every_address_resolves(site, pages):
    """To pages and their elements, to files of tables and assets, and to objects, in exactly their case."""
    assert unresolved(site, pages) == []
    addresses = {address for page in pages.values() for address in page.links}
    assert sum("/objects/" in address for address in addresses) > 100
    assert sum("#" in address for address in addresses) > 40
    assert sum(address.endswith(".csv") for address in addresses) > 20


@pytest.mark.parametrize(
    "address",
    [
        "",
        "#",
        "#nowhere",
        "#MAIN",
        "Index.html",
        "assets",
        "targets/CPU.html",
        "targets/cpu.html#nowhere",
        "targets/cpu.html/",
        "../objects/00/00",
        "site.json#main",
        "https://example.org/",
        "//example.org/",
        "/index.html",
        "javascript:alert(1)",
    ],
)
def test_an_address_that_leads_nowhere_is_found(site, pages, address):
    planted = Found(links=["index.html#main", "targets/cpu.html", address])
    assert unresolved(site, {**pages, "planted.html": planted}) == [("planted.html", address)]


def test_every_page_is_reached_from_the_index(site, pages):
    seen, queue = set(), ["index.html"]
    while queue:
        path = queue.pop()
        if path in seen or path not in pages:
            continue
        seen.add(path)
        for address in pages[path].links:
            target = Path(os.path.normpath((site / path).parent / address.partition("#")[0]))
            if target.is_relative_to(site):
                queue.append(target.relative_to(site).as_posix())
    assert seen == set(pages)


def test_objects_of_a_checkout(made):
    render(made / "new/store", made / "checked-out", object_base="../new/store/{stage}/objects")
    pages = {f"checked-out/{path}": page for path, page in pages_below(made / "checked-out").items()}
    assert unresolved(made, pages) == [] and len(pages) > 20
