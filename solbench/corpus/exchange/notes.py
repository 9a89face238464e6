"""What an import or export could not carry over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Note:
    """``loss``: something of ``where`` was left behind or changed. ``unsupported``: ``where`` was left out whole.
    ``warning``: it was carried over, and is worth a look."""

    where: str
    kind: Literal["loss", "warning", "unsupported"]
    what: str


@dataclass(frozen=True)
class Notes:
    """Notes in the order of the work; the same one is kept once."""

    rows: list[Note] = field(default_factory=list)

    def loss(self, where: str, what: str) -> None:
        """``where`` is carried over, but not all of it."""
        self._add(Note(_line(where), "loss", _line(what)))

    def warning(self, where: str, what: str) -> None:
        """``where`` is carried over as it is, which may surprise."""
        self._add(Note(_line(where), "warning", _line(what)))

    def unsupported(self, where: str, reason: str) -> None:
        """``where`` is not carried over at all."""
        self._add(Note(_line(where), "unsupported", _line(reason)))

    def _add(self, note: Note) -> None:
        if note not in self.rows:
            self.rows.append(note)


def _line(text: str) -> str:
    """``text`` on one line: names and values in it are foreign."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


@dataclass(frozen=True)
class Carried:
    """Result of one import or export: names of what was written, and what was not."""

    problems: tuple[str, ...]
    solutions: tuple[str, ...]
    traces: int
    notes: tuple[Note, ...]
