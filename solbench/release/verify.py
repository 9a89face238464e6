"""Decides whether a bundle is what it says, without trusting, extracting, following or running anything in it.

Levels in order: safety of the container, every hash, closure from the root, contracts, scores and bounds derived
again, the site, and a replay of its references where one is asked for. Needs neither PyTorch nor a device without that.
Two statements are kept apart: a bundle is *self-consistent*, or it also *matches the root that the caller expects*;
hashes prove integrity, never authorship.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from solbench import canonical
from solbench.errors import InputError
from solbench.release import code, levels, readiness, recompute
from solbench.release.findings import EXIT_CODES, LEVELS, Finding, Findings, Verdict, worst
from solbench.release.source import Limits, Source, open_source

if TYPE_CHECKING:
    from solbench.release import replay as replaying

State = Literal["verified", "bad", "undecided", "unsupported", "skipped"]
LIMITS: Final = Limits()
_MUST_HOLD: Final = ("safety", "hashes", "closure", "schemas")


@dataclass(frozen=True)
class Level:
    """One line of the report."""

    name: str
    state: State
    note: str

    def as_dict(self) -> dict[str, str]:
        return {"level": self.name, "state": self.state, "note": self.note}


@dataclass(frozen=True)
class Result:
    """What was proven. ``matches_expected`` is null where no root was expected; ``bytes`` counts what was hashed;
    ``replay`` is null where none was asked for, or a level before it failed."""

    verdict: Verdict
    root: str | None
    matches_expected: bool | None
    objects: int
    bytes: int
    levels: tuple[Level, ...]
    errors: tuple[Finding, ...]
    more_errors: int
    replay: replaying.Replayed | None = None

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """The document of ``solbench verify --json``: the same bytes for the same bundle and question, anywhere."""
        return {
            "schema": "solbench.verification.v1",
            "verdict": self.verdict,
            "root": self.root,
            "matches_expected": self.matches_expected,
            "trust": "none" if self.matches_expected is None else "expected root",
            "objects": self.objects,
            "bytes": self.bytes,
            "levels": [level.as_dict() for level in self.levels],
            "errors": [error.as_dict() for error in self.errors],
            "more_errors": self.more_errors,
            "replay": self.replay.as_dict() if self.replay is not None else None,
        }


def verify(
    path: Path,
    expect_root: str | None = None,
    limits: Limits = LIMITS,
    on_level: Callable[[Level], None] = lambda level: None,
    examine: Callable[[levels.Contents], None] | None = None,
    replay: replaying.Request | None = None,
) -> Result:
    """Verify the bundle at ``path``, an archive or a directory; ``on_level`` hears of each level as it ends.

    ``examine`` is given the contents of a bundle that is verified, and has the expected root, while it is open.
    ``expect_root``: the root that it must have, as ``blake3:<64 hex>`` or 64 hex digits. ``replay``: run its references
    as well, in the full sandbox; nothing of the bundle is run without it. :class:`InputError` where the question itself
    is wrong: no such path, not a root, no such problem.
    """
    expected = _expected_root(expect_root)
    if not os.path.exists(path):
        raise InputError(str(path), "no such file or directory")
    findings = Findings()
    done: list[Level] = []

    def end(name: str, note: str, state: State | None = None) -> None:
        level = Level(name, state or findings.level(name), note)
        done.append(level)
        on_level(level)

    contents: levels.Contents | None = None
    replayed: replaying.Replayed | None = None
    source = open_source(path, limits, findings)
    thresholds = gc.get_threshold()
    # Parsed documents are many objects without a cycle; to look through them again and again takes a tenth of the time.
    gc.set_threshold(100_000, *thresholds[1:])
    try:
        end("safety", _safety_note(path, source))
        if source is not None:
            contents = levels.hashes(source, limits, findings)
            end("hashes", f"{len(contents.objects)} objects, {contents.bytes_read} bytes, BLAKE3 and SHA-256")
            with _unchanged("closure", findings):
                levels.closure(contents, limits, expected, findings)
            if findings.clean(*_MUST_HOLD):
                with _unchanged("schemas", findings):
                    recompute.cross_references(contents.sections, contents.load, findings)
            end("closure", f"{len(contents.kinds)} objects reachable from the root, and no other")
            end("schemas", f"{len(contents.kinds)} artifacts against their contracts and one another")
            _derive(contents, findings, end)
            pages = levels.site(contents, findings)
            end("site", f"{pages} files against site.json" if pages else "no site in it", None if pages else "skipped")
            replayed = _replay(contents, replay, findings, end)
            if examine is not None and findings.clean(*LEVELS):
                examine(contents)
    finally:
        gc.set_threshold(*thresholds)
        if source is not None:
            source.close()
    names = {level.name for level in done}
    for name in LEVELS:
        if name not in names:
            end(name, "the container could not be listed", "skipped")
    root = contents.root.digest if contents is not None and contents.root is not None else None
    errors = findings.sorted()
    return Result(
        verdict=worst(errors),
        root=root,
        matches_expected=None if expected is None else root == expected,
        objects=len(contents.objects) if contents is not None else 0,
        bytes=contents.bytes_read if contents is not None else 0,
        levels=tuple(done),
        errors=errors,
        more_errors=findings.more,
        replay=replayed,
    )


def _derive(contents: levels.Contents, findings: Findings, end: Callable[..., None]) -> None:
    """Levels ``scores`` and ``bounds``: only over artifacts that all levels before have found sound."""
    if not findings.clean(*_MUST_HOLD) or contents.root is None:
        for name in ("scores", "bounds", "code", "readiness"):
            end(name, "not derived again: a level before it failed", "skipped")
        return
    scores = entries = bounds = kernels = matrices = 0
    with _unchanged("scores", findings):
        scores, entries = recompute.scores(contents.sections, contents.load, findings)
        recompute.counts(contents.load("release", contents.root), contents.sections, contents.load, findings)
    end("scores", f"{scores} scores and {entries} entries derived again from samples and bounds")
    with _unchanged("bounds", findings):
        bounds = recompute.bounds(contents.sections, contents.load, findings)
    end("bounds", f"{bounds} bounds derived again from IR and machine model")
    with _unchanged("code", findings):
        kernels = code.evidence(contents.sections, contents.load, contents.raw, findings)
    end("code", f"{kernels} kernels' evidence derived again from code objects and assembly")
    with _unchanged("readiness", findings):
        matrices = readiness.derive_again(contents.sections, contents.load, findings)
    end("readiness", f"{matrices} matrices, the static ones derived again")


def _replay(
    contents: levels.Contents, request: replaying.Request | None, findings: Findings, end: Callable[..., None]
) -> replaying.Replayed | None:
    """Level ``replay``: the only one that runs anything of the bundle, and only where all levels before are clean."""
    if request is None:
        end("replay", "not asked for (--replay)", "skipped")
        return None
    if not findings.clean(*LEVELS):
        end("replay", "nothing was run: a level before it failed", "skipped")
        return None
    from solbench.release import replay as replaying

    replayed = replaying.Replayed()
    with _unchanged("replay", findings):
        replayed = replaying.replay(contents, request, findings)
    end("replay", replayed.note)
    return replayed


@contextmanager
def _unchanged(level: str, findings: Findings) -> Iterator[None]:
    """Objects are read again where they do not fit into memory, and by then may be gone."""
    try:
        yield
    except OSError as error:
        findings.add(level, "io-changed", ".", found=error.strerror)


def _safety_note(path: Path, source: Source | None) -> str:
    if source is None:
        return "cannot be listed"
    count = len(source.sizes)
    if os.path.isdir(path):
        return f"{count} files, no link, nothing that we would not write"
    bytes_of_it = "every byte of the archive accounted for" if source.accounted else "compressed in another way"
    return f"{count} members, {bytes_of_it}"


def _expected_root(text: str | None) -> str | None:
    if text is None:
        return None
    root = f"blake3:{text}" if re.fullmatch(r"[0-9a-f]{64}", text) else text
    if not canonical.is_digest(root):
        raise InputError("--expect-root", "must be blake3: and 64 lower-case hex digits")
    return root
