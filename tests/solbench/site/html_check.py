"""Reads a page strictly: tags match, ids are unique; collects links, subresources, records and text.

``unresolved`` follows every address of a site.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"meta", "link", "input", "br", "hr", "img", "wbr"}
# Elements of SVG without content are written with a closing slash.
SELF_CLOSING = {"circle", "path", "line", "rect"}


@dataclass
class Found:
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    tags: list[str] = field(default_factory=list)
    policy: str = ""
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found = Found()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)
        if tag not in VOID:
            assert tag not in SELF_CLOSING, f"<{tag}> is not closed"
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SELF_CLOSING, f"<{tag}/>"
        self._element(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.found.words.append(data)
        elif data.strip():
            assert not self.open, f"inline {self.open[-1]}"

    def _element(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}>: an attribute twice"
        values = {name: value or "" for name, value in attrs}
        found = self.found
        found.tags.append(tag)
        found.attributes.update(names)
        if tag == "a":
            found.links.append(values["href"])
        if tag in ("link", "script", "img", "iframe", "object", "embed", "source", "use", "image"):
            found.resources.append(values.get("href", values.get("src", "")))
        if "id" in values:
            found.ids.append(values["id"])
        for name in ("aria-labelledby", "aria-describedby", "for"):
            found.references += values.get(name, "").split()
        if "data-record" in values:
            found.records.append(values["data-record"])
        if values.get("http-equiv") == "Content-Security-Policy":
            found.policy = values["content"]


def read(page: str) -> Found:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open, f"never closed: {reader.open}"
    assert page.startswith("<!doctype html>\n")
    found = reader.found
    assert len(set(found.ids)) == len(found.ids), "an id twice"
    assert set(found.references) <= set(found.ids)
    return found


def unresolved(site: Path, pages: Mapping[str, Found]) -> list[tuple[str, str]]:
    """(page, address) of every address that is not relative, or leads to no file of exactly this name (whatever the
    file system takes for equal), or to no element of that page. ``pages`` are all of the site, by path."""

    @cache
    def names(folder: Path) -> frozenset[str]:
        return frozenset(os.listdir(folder)) if folder.is_dir() else frozenset()

    @cache
    def present(path: Path) -> bool:
        return path == path.parent or (path.name in names(path.parent) and present(path.parent))

    ids = {Path(os.path.normpath(site / path)): frozenset(page.ids) for path, page in pages.items()}
    wrong = []
    for path, page in pages.items():
        here = Path(os.path.normpath(site / path))
        for address in page.links + page.resources:
            file, _, fragment = address.partition("#")
            target = Path(os.path.normpath(here.parent / unquote(file))) if file else here
            plain = bool(address) and not (":" in file or "?" in file or file.startswith("/") or file.endswith("/"))
            there = plain and present(target) and target.is_file()
            if not there or ("#" in address and unquote(fragment) not in ids.get(target, ())):
                wrong.append((path, address))
    return wrong
