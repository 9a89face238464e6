"""Which names a bundle may hold. Writer and verifier use the same rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

MAX_PATH_BYTES: Final = 512
MAX_PATH_LEVELS: Final = 32

TOP_FILES: Final = ("B3SUMS", "SHA256SUMS", "provenance.json", "release.json", "site.json")
OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})\Z")
_ANY_OBJECT = re.compile(r"objects/([0-9A-Za-z]+)/([0-9A-Za-z]+)\Z")
_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(?:\..*)?\Z", re.IGNORECASE)


def problems_of(name: str) -> Iterator[str]:
    """Codes of every rule that a member's name breaks; nothing for a name that is safe everywhere."""
    if OBJECT.match(name):
        return  # breaks none of them; most members are objects
    segments = name.split("/")
    if not name or "" in segments[1:]:
        yield "path-empty"
    if name.startswith("/"):
        yield "path-absolute"
    if segments[0] == "..":
        yield "path-traversal"
    if any(segment in (".", "..") for segment in segments):
        yield "path-dot"
    if "\\" in name or _DRIVE.match(name) or name.startswith("//"):
        yield "path-windows"
    if any(unicodedata.category(character) == "Cc" for character in name):
        yield "path-control"
    if not name.isascii():
        yield "path-unicode"
    if any(
        _DEVICE.match(segment) or (segment not in (".", "..") and segment.endswith((".", " "))) for segment in segments
    ) or name.startswith(("-", "~")):
        yield "path-reserved"
    if len(name.encode("utf-8", "surrogateescape")) > MAX_PATH_BYTES or len(segments) > MAX_PATH_LEVELS:
        yield "limit-path"


def misplaced(name: str) -> str | None:
    """Code for a safe name that has no place in a bundle, or None."""
    if name in TOP_FILES or OBJECT.match(name) or name.startswith("site/"):
        return None
    if not name.startswith("objects/"):
        return "extra-file"
    found = _ANY_OBJECT.match(name)
    if found is None:
        return "object-path" if re.search(r"[0-9a-f]{62}", name) else "extra-file"
    digits = found[1] + found[2]
    if len(digits) != 64 or not re.fullmatch(r"[0-9a-f]*", digits):
        return "digest-format"
    return "object-path"


def clashes(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(code, name) of every name that another name shadows: on a file system without case or with normal forms."""
    folded: dict[str, str] = {}
    everything = sorted(set(names))
    for name in everything:
        key = unicodedata.normalize("NFC", name).casefold()
        if key in folded:
            yield "path-collision", name
        folded.setdefault(key, name)
    files = set(folded)
    for name in everything:
        if OBJECT.match(name) and not {"objects", name[:10]} & files:
            continue
        parts = unicodedata.normalize("NFC", name).casefold().split("/")
        if any("/".join(parts[:length]) in files for length in range(1, len(parts))):
            yield "path-conflict", name
