"""Where every page stands below ``site/``, and relative addresses from page to page and from number to object.

A page is (kind, key); a new kind of page needs a line in :func:`paths` and a builder in ``pages``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import IntegrityError
from solbench.site.records import Book
from solbench.store import Descriptor, Store, decode

Page = tuple[str, str]
SINGLE = ("index", "corpus", "hardware", "status", "compare", "method", "verify")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
# Names that some file systems keep for devices, whatever their suffix.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?\Z", re.IGNORECASE)


def slug(name: str) -> str:
    """``name`` as one path part or fragment: unchanged where harmless, else simplified and told apart by a hash."""
    if _PLAIN.match(name) and not _DEVICE.match(name) and not name.endswith((".", ".html")):
        return name
    simple = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:60].strip("-") or "x"
    return f"{simple}-{canonical.derived_key('site slug', name)[:10]}"


def paths(book: Book) -> dict[Page, str]:
    """Path of every page, distinct also where a file system ignores case."""
    wanted: dict[Page, str] = {(name, ""): f"{name}.html" for name in SINGLE}
    for target in book.targets:
        wanted["target", target.name] = f"targets/{slug(target.name)}.html"
    for problem in book.problems:
        place = "/".join(map(slug, problem.key.split("/")))
        wanted["problem", problem.key] = f"problems/{place}.html"
        for workload in problem.workloads:
            wanted["workload", workload.record.name] = f"workloads/{place}/{slug(workload.uuid)}.html"
        for solution in problem.solutions:
            wanted["solution", solution.name] = f"solutions/{place}/{slug(solution.value.name)}.html"
    taken: dict[str, Page] = {}
    for page, path in wanted.items():
        if path.lower() in taken:
            wanted[page] = path.removesuffix(".html") + f"-{canonical.derived_key('site slug', page[1])[:10]}.html"
        taken[wanted[page].lower()] = page
    return wanted


@dataclass(frozen=True)
class Objects:
    """Addresses of objects relative to ``site/``. ``base`` may hold ``{stage}``; ``known`` remembers what was found."""

    book: Book
    store_root: Path
    base: str
    known: dict[str, str] = field(default_factory=dict)

    def address(self, descriptor: Descriptor) -> str:
        """:class:`IntegrityError` unless the release holds the object and it is in the store."""
        found = self.known.get(descriptor.digest)
        if found is None:
            stage = self.book.stage_of.get(descriptor.digest)
            if stage is None:
                raise IntegrityError(f"{descriptor.digest} ({descriptor.kind}): is referred to, not in the release")
            there = descriptor.digest in self.book.read
            if not there and not (self.store_root / stage / "objects" / descriptor.path).is_file():
                raise IntegrityError(
                    f"{descriptor.digest} ({descriptor.kind}): missing; run `solbench pull` or `repro`"
                )
            found = self.known[descriptor.digest] = f"{self.base.replace('{stage}', stage)}/{descriptor.path}"
        return found

    def read(self, descriptor: Descriptor) -> bytes:
        """The bytes of an object of the release, checked; raises as :meth:`address` does, or where they are others."""
        self.address(descriptor)
        return Store(self.store_root).read(self.book.stage_of[descriptor.digest], descriptor)

    def load(self, descriptor: Descriptor) -> dict[str, Any]:
        """The artifact of the release that ``descriptor`` refers to, with its kind."""
        return decode(self.read(descriptor), descriptor)


@dataclass(frozen=True)
class Links:
    """Addresses as seen from one page."""

    objects: Objects
    paths: Mapping[Page, str]
    path: str

    @property
    def _up(self) -> str:
        return "../" * self.path.count("/")

    def page(self, kind: str, key: str = "", fragment: str = "") -> str:
        path = self.paths.get((kind, key))
        if path is None:
            raise IntegrityError(f"site: {kind} {key!r} is referred to, and the release does not have it")
        address = self._up + path
        return f"{address}#{fragment}" if fragment else address

    def asset(self, name: str) -> str:
        return f"{self._up}assets/{name}"

    def object(self, descriptor: Descriptor) -> str:
        return self._up + self.objects.address(descriptor)
