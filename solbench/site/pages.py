"""What every page has, and the pages of plain words.

The content of a page is plain values: text, numbers with their object, rows in order. Templates only lay out. Whatever
stands for one record carries its logical name, so that the renderer can count them in the finished pages.
"""

from __future__ import annotations

from typing import Any

from solbench.site import status
from solbench.site.cells import HEADROOM, ref
from solbench.site.links import Links
from solbench.site.records import Book
from solbench.site.target import target_headline
from solbench.store import Descriptor


def base(book: Book, links: Links, kind: str, key: str, title: str, root: Descriptor) -> dict[str, Any]:
    """What every page has: its title, navigation, the release. ``root``: the release's object, or its stand-in."""
    release = book.release
    entries = [("index", "", "Release"), ("corpus", "", "Corpus")]
    entries += [("target", target.name, target.name) for target in book.targets]
    entries += [("hardware", "", "Hardware"), ("status", "", "Status"), ("compare", "", "Compare")]
    entries += [("method", "", "Method"), ("verify", "", "Verify")]
    return {
        "title": title,
        "asset": links.asset,
        "nav": [
            {"label": label, "href": links.page(page, page_key), "current": (page, page_key) == (kind, key)}
            for page, page_key, label in entries
        ],
        "release_name": release.value.name,
        "root": ref(links, f"release {release.value.name}", root),
        "home": links.page("index"),
        "method": links.page("method"),
        "verify": links.page("verify"),
        "verify_command": f"solbench verify release/{release.value.name}.zip --expect-root {root.digest}",
    }


def method_page(book: Book, links: Links) -> dict[str, Any]:
    states = status.meanings([kind for kind in status.KINDS if kind != "scored"])
    return {
        "states": states,
        "headroom": list(HEADROOM.items()),
        "targets": [target_headline(book, links, t) for t in book.targets],
    }


def verify_page(book: Book, links: Links) -> dict[str, Any]:
    root = book.release.descriptor
    return {"object_command": f"b3sum objects/{root.path}", "root_hex": root.digest.removeprefix("blake3:")}
