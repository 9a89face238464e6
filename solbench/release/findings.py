"""What a verification found wrong: stable codes, what each proves, and text that is safe on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

Verdict = Literal["verified", "bad", "undecided", "unsupported"]
EXIT_CODES: Final[dict[str, int]] = {"verified": 0, "bad": 1, "undecided": 3, "unsupported": 4}
# In the order in which they are run; each is a line of the report.
LEVELS: Final = ("safety", "hashes", "closure", "schemas", "scores", "bounds", "code", "readiness", "site", "replay")

# Codes that leave the question open: something outside the data, a limit that a flag raises, another coding of the
# very bytes that we would write.
UNDECIDED: Final = frozenset(
    {
        "io-error", "io-changed", "limit-files", "limit-object", "limit-manifest", "limit-total", "limit-expansion",
        "archive-compression", "cannot-recompute", "cannot-replay",
    }
)  # fmt: skip
# Codes for what is well-formed but not known here.
UNSUPPORTED: Final = frozenset({"unsupported", "version", "algorithm-unknown"})

MAX_FINDINGS: Final = 1000
MAX_TEXT: Final = 200


@dataclass(frozen=True, order=True)
class Finding:
    """One thing wrong: ``path`` names the member, object or logical name; all texts are escaped ASCII."""

    code: str
    path: str
    expected: str | None = None
    found: str | None = None

    @property
    def proves(self) -> Verdict:
        if self.code in UNDECIDED:
            return "undecided"
        return "unsupported" if self.code in UNSUPPORTED else "bad"

    def as_dict(self) -> dict[str, str | None]:
        return {"code": self.code, "path": self.path, "expected": self.expected, "found": self.found}


@dataclass
class Findings:
    """Collects findings by level, at most ``MAX_FINDINGS`` of them; ``more`` counts the rest."""

    by_level: dict[str, set[Finding]] = field(default_factory=dict)
    more: int = 0
    _total: int = 0

    def add(self, level: str, code: str, path: str, expected: object = None, found: object = None) -> None:
        self.put(level, Finding(code, escape(path), _text(expected), _text(found)))

    def put(self, level: str, finding: Finding) -> None:
        group = self.by_level.setdefault(level, set())
        if finding in group:
            return
        # The last places are for what proves a bundle bad, so that a flood of open questions cannot hide it.
        room = MAX_FINDINGS if finding.proves == "bad" else MAX_FINDINGS // 2
        if self._total >= room:
            self.more += 1
            return
        self._total += 1
        group.add(finding)

    def level(self, name: str) -> Verdict:
        return worst(self.by_level.get(name, ()))

    def clean(self, *levels: str) -> bool:
        return not any(self.by_level.get(name) for name in levels)

    def sorted(self) -> tuple[Finding, ...]:
        everything = {finding for group in self.by_level.values() for finding in group}
        return tuple(sorted(everything, key=lambda f: (f.code, f.path, f.expected or "", f.found or "")))


def worst(findings: Iterable[Finding]) -> Verdict:
    """What findings prove together: bad before unsupported before undecided, verified where there are none."""
    proved = {finding.proves for finding in findings}
    order: tuple[Verdict, ...] = ("bad", "unsupported", "undecided")
    return next((verdict for verdict in order if verdict in proved), "verified")


def escape(text: str) -> str:
    """Printable ASCII: everything else, and the backslash, as an escape; cut where it is very long."""
    shown = text.encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= MAX_TEXT else shown[: MAX_TEXT - 3] + "..."


def _text(value: object) -> str | None:
    return None if value is None else escape(str(value))
