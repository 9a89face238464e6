"""What every form of a bundle has in common: members with safe names, read a piece at a time, never extracted.

Nothing is written, mapped or followed. What cannot be read is a finding; what changes while being read as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from solbench.release import paths
from solbench.release.findings import Findings

CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a verifier is willing to read; beyond it the verdict is "could not decide". Bytes.

    ``expansion``: what a compressed archive may unpack to, as a multiple of its size.
    """

    files: int = 200_000
    manifest_bytes: int = 8 << 20
    object_bytes: int = 8 << 30
    total_bytes: int = 256 << 30
    expansion: int = 200


class ChangedError(OSError):
    """A member is not what it was when the bundle was opened."""


class RefusedError(Exception):
    """An archive is not what we would write, or unpacks to more than allowed; what a finding says of it."""

    def __init__(self, code: str, expected: object, found: object, path: str = ".") -> None:
        super().__init__(f"{path}: {code}: expected {expected}, found {found}")
        self.code = code
        self.expected = expected
        self.found = found
        self.path = path


class Source(ABC):
    """``sizes``: bytes of every member with a safe name; ``crcs``: stated CRC-32, where the container has them.

    ``accounted``: whether every byte of the container was found to be what we would write.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.crcs: dict[str, int] = {}
        self.accounted = True

    @abstractmethod
    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of a member, a piece at a time; :class:`OSError` where that fails."""

    @abstractmethod
    def close(self) -> None: ...

    def read(self, name: str) -> bytes:
        return b"".join(self.chunks(name))


def text_of(name: bytes) -> str:
    """A member's name as text; bytes that are not UTF-8 stay apart from all text."""
    return name.decode("utf-8", "surrogateescape")


def accept(name: str, findings: Findings) -> bool:
    """Whether a member with this name may be read on; its problems are recorded."""
    codes = list(paths.problems_of(name))
    if not codes:
        misplaced = paths.misplaced(name)
        codes = [misplaced] if misplaced else []
    for code in codes:
        findings.add("safety", code, name)
    return not codes


def check_names(names: Iterable[str], findings: Findings) -> None:
    """Record every name that another one shadows."""
    for code, name in paths.clashes(names):
        findings.add("safety", code, name)
