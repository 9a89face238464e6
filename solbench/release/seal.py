"""A seal: the statement that a release was complete, sound and ready when its archive was written, and which archive.

It stands beside the archive, like its digest, and names both, the root and what every target had shown. It is written
last and whole: where there is no seal, nothing was sealed, and the next run begins anew.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from blake3 import blake3

from solbench import canonical
from solbench.errors import InputError, IntegrityError
from solbench.model.readiness import Readiness
from solbench.model.release import Release
from solbench.release import readiness
from solbench.release.bundle import STATEMENT_TYPE, Bundle
from solbench.release.fsck import fsck
from solbench.release.root import STAGES
from solbench.release.verify import verify
from solbench.store import Descriptor, Store, without_kind
from solbench.workspace import Workspace, write_file, writing

PREDICATE_TYPE: Final = "https://solbench.dev/seal/v1"
_CHUNK = 1 << 20

Sections = Mapping[str, Mapping[str, Descriptor]]


@dataclass(frozen=True)
class Sealed:
    """The archive, its seal, and what was verified of it; ``again``: the same seal stood there."""

    bundle: Bundle
    path: Path
    objects: int
    readiness: tuple[tuple[str, int, int], ...]
    again: bool


def seal_path(archive: Path) -> Path:
    """Where the seal of an archive stands."""
    return archive.with_name(f"{archive.name}.seal.json")


def seal(workspace: Workspace, archive: Path, revision: str, pack: Callable[[Path], Bundle]) -> Sealed:
    """Check the release of a DVC root, write its archive with ``pack``, verify that, and write the seal beside it.

    The caller holds the lock of the checkout. ``revision``: of the source, which must be committed whole.
    :class:`IntegrityError` or :class:`InputError` says what keeps the release from being sealed; then there is no seal
    of that archive, and none of an earlier one.
    """
    store = workspace.store
    sections = {stage: store.index(stage) for stage in STAGES}
    require_sound(workspace)
    shown = require_ready(store, sections)
    path = seal_path(archive)
    # What a killed run was writing; the caller holds the lock, so no other run is.
    for left in archive.parent.glob(f".{glob.escape(archive.name)}*-*"):
        left.unlink()
    kept = path.read_bytes() if path.is_file() else None
    # A seal that stands beside another archive would be a lie from the first byte of that on.
    path.unlink(missing_ok=True)
    bundle = pack(archive)
    result = verify(archive, bundle.root.digest)
    if result.exit_code:
        raise IntegrityError(
            f"{archive}: {result.verdict}: {result.errors[0].code} {result.errors[0].path}; not sealed"
        )
    statement = _statement(archive, bundle, store, revision, shown, result.as_dict()["levels"])
    data = canonical.dumps(statement)
    with writing(str(path)):
        write_file(path, data)
    counts = tuple((f"{target} {level}", one.ready, one.total) for target, level, one, _ in shown)
    return Sealed(bundle, path, result.objects, counts, kept == data)


def require_sound(workspace: Workspace) -> None:
    """The store holds all that its indexes name and no more, and the release is the one that they make."""
    report = fsck(workspace.store.root)
    if report.exit_code:
        first = report.findings[0]
        raise IntegrityError(
            f"store: {first.code} {first.path} ({len(report.findings) + report.more} findings); "
            "`solbench store fsck` lists them, `solbench repro` mends them"
        )
    name = workspace.parameters().release
    stated = workspace.root / "release" / f"{name}.json"
    root = workspace.store.index("release")["release"]
    if not stated.is_file() or canonical.digest(stated.read_bytes()) != root.digest:
        raise InputError(str(stated), "is not the release that the store holds; run `solbench repro`")


Shown = tuple[str, str, Readiness, Descriptor]


def require_ready(store: Store, sections: Sections) -> list[Shown]:
    """(target, level, matrix, its reference) of every target; :class:`InputError` names the first that is missing.

    Static readiness of every target that the release has a workload for, and full readiness of those with times.
    """
    root = store.index("release")["release"]
    release = Release.load(without_kind(store.load("release", root)), "release")
    found = []
    for state in release.targets:
        if not state.workloads:
            continue
        levels = ("static", "full") if state.state == "timed" else ("static",)
        for level in levels:
            found.append(_shown(store, sections, state.target, level))
        for level in readiness.LEVELS:
            if level not in levels and f"{state.target}/{level}" in sections[readiness.STAGE]:
                found.append(_read(store, sections, state.target, level))
    return found


def _shown(store: Store, sections: Sections, target: str, level: str) -> Shown:
    if f"{target}/{level}" not in sections[readiness.STAGE]:
        why = "it has times" if level == "full" else "every target needs it"
        raise InputError(
            f"readiness: {target}/{level}",
            f"is missing, and {why}; run `solbench qualify {level} --target {target}` and `solbench repro`",
        )
    shown = _read(store, sections, target, level)
    # What the machine at hand cannot hold is told in the seal; it leaves no official score.
    lacking = [item for item in readiness.unready(shown[2]) if not str(item.reason).startswith("UNSUPPORTED: ")]
    if lacking:
        first = "/".join(part for part in lacking[0].key if part)
        raise InputError(
            f"readiness: {target}/{level}",
            f"{len(lacking)} of {shown[2].total} hold it back, as {first}: {lacking[0].reason}",
        )
    return shown


def _read(store: Store, sections: Sections, target: str, level: str) -> Shown:
    reference = sections[readiness.STAGE][f"{target}/{level}"]
    matrix = Readiness.load(without_kind(store.load(readiness.STAGE, reference)), f"readiness: {target}/{level}")
    return target, level, matrix, reference


def _statement(
    archive: Path, bundle: Bundle, store: Store, revision: str, shown: list[Shown], levels: list[dict[str, str]]
) -> dict[str, Any]:
    """in-toto statement about the archive and the release object in it."""
    release = store.read("release", bundle.root)
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": archive.name, "digest": _digests(_pieces(archive))},
            {"name": "release.json", "digest": _digests(iter((release,)))},
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "root": bundle.root.digest,
            "gitCommit": revision,
            "levels": [{"level": level["level"], "state": level["state"]} for level in levels],
            "readiness": [
                {"target": target, "level": level, "ready": one.ready, "total": one.total, "digest": reference.digest}
                for target, level, one, reference in shown
            ],
        },
    }


def _digests(pieces: Iterator[bytes]) -> dict[str, str]:
    b3, sha256 = blake3(), hashlib.sha256()
    for piece in pieces:
        b3.update(piece)
        sha256.update(piece)
    return {"blake3": b3.hexdigest(), "sha256": sha256.hexdigest()}


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            yield piece
