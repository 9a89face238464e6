"""Who needs an object: the release that leads to it, and the rendered pages that link to it, read from themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from solbench import canonical
from solbench.errors import IntegrityError
from solbench.release import inventory, paths, reach
from solbench.store import Descriptor

MAX_PAGE: Final = 64 << 20
_ADDRESS = re.compile(rb"objects/([0-9a-f]{2})/([0-9a-f]{62})(?![0-9a-f])")


@dataclass(frozen=True)
class Shown:
    """Pages by the digest of the object that they link to. ``fault``: why the site says nothing (no pages then)."""

    pages: Mapping[str, tuple[str, ...]]
    fault: str | None = None


def shown(site: Path, release: Descriptor | None) -> Shown:
    """Read the rendered ``site`` of ``release``; a site that is missing, of another release or altered is a fault."""
    try:
        data = inventory.read(site, "site.json", MAX_PAGE)
    except FileNotFoundError:
        return Shown({}, "no site is rendered; run `solbench site`")
    except OSError as error:
        return Shown({}, f"site.json: {error.strerror}")
    try:
        manifest = canonical.loads(data or b"", "site.json")
    except IntegrityError as error:
        return Shown({}, str(error))
    pages = manifest.get("pages") if isinstance(manifest, dict) else None
    if not isinstance(pages, dict):
        return Shown({}, "site.json: lists no pages")
    if release is None or manifest.get("release") != release.as_dict():
        return Shown({}, "the rendered site is of another release; run `solbench site`")
    found: dict[str, list[str]] = {}
    for name in sorted(pages):
        if not name.endswith(".html"):
            continue
        if any(paths.problems_of(name)):
            return Shown({}, f"site.json: {name!r} is no page")
        try:
            page = inventory.read(site, name, MAX_PAGE)
        except OSError as error:
            return Shown({}, f"{name}: {error.strerror}")
        if page is None or canonical.digest(page) != pages[name]:
            return Shown({}, f"{name}: is not the page that site.json lists; render the site again")
        for digits in {(match[1] + match[2]).decode() for match in _ADDRESS.finditer(page)}:
            found.setdefault(f"blake3:{digits}", []).append(name)
    return Shown({digest: tuple(names) for digest, names in found.items()})


@dataclass(frozen=True)
class Need:
    """Why an object is kept.

    ``levels``: what refers to it, then what refers to that, up to the release. ``release``: the digest of the release
    that leads to it, or None. ``through``: where no page links to it, those that link to the nearest that refer to it.
    ``fault``: why the pages are not known. ``unread``: objects of which it is not known what they refer to.
    """

    descriptor: Descriptor
    names: tuple[str, ...]
    levels: tuple[tuple[Descriptor, ...], ...]
    release: str | None
    pages: tuple[str, ...]
    through: tuple[str, ...]
    fault: str | None
    unread: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.descriptor.as_dict(),
            "named_by": list(self.names),
            "referrers": [[descriptor.as_dict() for descriptor in level] for level in self.levels],
            "release": self.release,
            "pages": list(self.pages),
            "pages_through_referrers": list(self.through),
            "site_fault": self.fault,
            "unread": list(self.unread),
        }


def need(store: reach.Catalogue, digest: str, site: Path) -> Need:
    """Who needs an object of ``store``; ``site``: the folder of its rendered pages."""
    graph = reach.referrers(store)
    levels = tuple(tuple(level) for level in graph.levels(digest))
    release = store.release
    above = {digest, *(descriptor.digest for level in levels for descriptor in level)}
    found = shown(site, release)
    pages = found.pages.get(digest, ())
    return Need(
        descriptor=reach.reference(store, digest),
        names=tuple(str(entry) for entry in store.named.get(digest, ())),
        levels=levels,
        release=release.digest if release is not None and release.digest in above else None,
        pages=pages,
        through=() if pages else _through(levels, found.pages),
        fault=found.fault,
        unread=graph.unread,
    )


def _through(levels: tuple[tuple[Descriptor, ...], ...], pages: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Pages that link to the nearest referrers; the release and its sections list everything and say nothing."""
    for level in levels:
        names = {name for one in level if one.kind not in ("release", "section") for name in pages.get(one.digest, ())}
        if names:
            return tuple(sorted(names))
    return ()
