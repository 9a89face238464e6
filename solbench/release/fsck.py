"""Everything that can be wrong with a store on disk, found without changing it: files, names, hashes, references.

Memory grows with the number of objects, never with their size. Codes are those of ``solbench verify`` where both know
the fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from solbench import canonical
from solbench.canonical import MalformedError
from solbench.errors import IntegrityError, UndecidedError
from solbench.release import inventory, reach, references
from solbench.release.findings import EXIT_CODES, Finding, Findings, Verdict, worst
from solbench.release.inventory import Item
from solbench.release.root import section_object
from solbench.release.source import Limits
from solbench.store import RAW_KINDS, Descriptor, Index, encode

LEVEL: Final = "store"
# What a thing that has no place in a store is called.
_ODD: Final = {
    "stray": ("extra-file", "an index, or stage/objects/<2 hex>/<62 hex>"),
    "temporary": ("temporary", "nothing; a writer was killed here"),
    "link": ("fs-symlink", "a regular file"),
    "special": ("fs-type", "a regular file"),
    "unreadable": ("io-error", "a folder that can be read"),
}


@dataclass(frozen=True)
class Report:
    """What was looked at and what is wrong. ``sound``: of ``objects``, those with nothing wrong in or about them."""

    findings: tuple[Finding, ...]
    more: int
    objects: int
    sound: int
    entries: int
    present: int
    references: int
    bytes: int

    @property
    def verdict(self) -> Verdict:
        return worst(self.findings)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "objects": self.objects,
            "sound_objects": self.sound,
            "index_entries": self.entries,
            "present_entries": self.present,
            "references": self.references,
            "bytes": self.bytes,
            "errors": [finding.as_dict() for finding in self.findings],
            "more_errors": self.more,
        }


@dataclass
class _Work:
    """What the check has found so far."""

    root: Path
    limits: Limits
    findings: Findings = field(default_factory=Findings)
    indexes: dict[str, Index] = field(default_factory=dict)
    unread_indexes: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    known: dict[str, Descriptor] = field(default_factory=dict)
    stages: dict[str, set[str]] = field(default_factory=dict)
    sound: int = 0
    references: int = 0
    bytes: int = 0

    def add(self, code: str, path: str, expected: object = None, found: object = None) -> None:
        self.findings.add(LEVEL, code, path, expected, found)


def fsck(root: Path, limits: Limits | None = None) -> Report:
    """Check every file below the store ``root``, every index entry and every reference; changes nothing.

    :class:`~solbench.errors.InputError` where there is no such folder.
    """
    work = _Work(root, limits or Limits())
    objects: list[Item] = []
    strays: list[Item] = []
    for item in inventory.items(root):
        if item.what == "index":
            _read_index(work, item)
        elif item.what == "object":
            objects.append(item)
        elif item.what == "stray" and not item.path.endswith("/"):
            strays.append(item)
        else:
            work.add(_ODD[item.what][0], item.path, _ODD[item.what][1])
            if item.what == "unreadable":
                work.unlisted.add(item.stage)
            elif item.names_index:
                work.unread_indexes.add(item.stage)
    for stage in sorted({item.stage for item in objects} - work.indexes.keys() - work.unread_indexes):
        count = sum(item.stage == stage for item in objects)
        work.add("missing-file", f"{stage}.json", f"the index of {count} objects")
        work.unread_indexes.add(stage)
    _entries(work)
    here = {(item.stage, item.digest) for item in objects}
    present = _presence(work, here)
    if not objects and not work.unlisted:
        work.add("missing-object", ".", "at least one object", "none; run `solbench pull` or `solbench repro`")
    for item in objects:
        before = len(work.findings.by_level.get(LEVEL, ())) + work.findings.more
        _object(work, item)
        work.sound += len(work.findings.by_level.get(LEVEL, ())) + work.findings.more == before
    for item in strays:
        _stray(work, item)
    _release(work)
    entries = sum(len(index) for index in work.indexes.values())
    return Report(
        findings=work.findings.sorted(),
        more=work.findings.more,
        objects=len(objects),
        sound=work.sound,
        entries=entries,
        present=present,
        references=work.references,
        bytes=work.bytes,
    )


def _read_index(work: _Work, item: Item) -> None:
    if item.size > work.limits.manifest_bytes:
        work.add("limit-manifest", item.path, work.limits.manifest_bytes, item.size)
        work.unread_indexes.add(item.stage)
        return
    try:
        work.indexes[item.stage] = reach.read_index(work.root, item.path)
    except UndecidedError as error:
        work.add("io-error", item.path, found=error)
    except MalformedError as error:
        work.add(error.code, item.path, found=error)
    except IntegrityError as error:
        work.add("index-format", item.path, "an index as `solbench` writes it", error)
    if item.stage not in work.indexes:
        work.unread_indexes.add(item.stage)


def _entries(work: _Work) -> None:
    """What all indexes name; one digest is one kind and one size."""
    for stage, index in sorted(work.indexes.items()):
        for name, descriptor in sorted(index.items()):
            known = work.known.setdefault(descriptor.digest, descriptor)
            work.stages.setdefault(descriptor.digest, set()).add(stage)
            where = f"{stage}.json: {name}"
            if known.kind != descriptor.kind:
                work.add("media-type", where, known.kind, descriptor.kind)
            if known.size != descriptor.size:
                work.add("size-mismatch", where, known.size, descriptor.size)


def _presence(work: _Work, here: set[tuple[str, str | None]]) -> int:
    """How many entries have a file; an object that is missing is one finding, a stage without any is one as well."""
    present = 0
    for stage, index in sorted(work.indexes.items()):
        found = sum((stage, descriptor.digest) in here for descriptor in index.values())
        present += found
        if stage in work.unlisted:
            # What could not be listed is not known to be missing.
            continue
        if index and not found:
            work.add("missing-object", f"{stage}/objects", f"{len(index)} entries of {stage}.json", "none of them")
            continue
        for name, descriptor in sorted(index.items()):
            if (stage, descriptor.digest) not in here:
                work.add("missing-object", f"{stage}/objects/{descriptor.path}", f"{descriptor.kind} {name}")
    return present


def _object(work: _Work, item: Item) -> None:
    assert item.digest is not None
    if item.stage in work.stages.get(item.digest, ()):
        descriptor: Descriptor | None = work.known[item.digest]
    else:
        descriptor = None
        others = ", ".join(sorted(work.stages.get(item.digest, ())))
        if others:
            work.add("object-path", item.path, f"a folder of a stage that names it: {others}", item.stage)
        elif item.stage not in work.unread_indexes:
            work.add("extra-object", item.path, f"objects that {item.stage}.json names")
    if descriptor is not None and descriptor.size != item.size:
        work.add("size-mismatch", item.path, descriptor.size, item.size)
        return
    if item.size > work.limits.object_bytes:
        work.add("limit-object", item.path, work.limits.object_bytes, item.size)
        return
    if work.bytes + item.size > work.limits.total_bytes:
        work.add("limit-total", item.path, work.limits.total_bytes)
        return
    artifact = descriptor is not None and descriptor.kind not in RAW_KINDS
    try:
        digest, data = inventory.digest_of(work.root, item.path, work.limits.manifest_bytes if artifact else 0)
    except OSError as error:
        work.add("io-error", item.path, found=error.strerror)
        return
    work.bytes += item.size
    if digest != item.digest:
        # The whole bytes of another object: moved rather than changed.
        code = "object-path" if digest in work.known else "digest-mismatch"
        work.add(code, item.path, item.digest, digest)
    elif descriptor is not None and artifact:
        if data is None:
            work.add("limit-manifest", item.path, work.limits.manifest_bytes, item.size)
        else:
            _artifact(work, item, descriptor, data)


def _artifact(work: _Work, item: Item, descriptor: Descriptor, data: bytes) -> None:
    """Canonical form, kind, and where each reference leads."""
    try:
        value = canonical.loads(data, item.path)
    except MalformedError as error:
        work.add(error.code, item.path, found=str(error).partition(": ")[2])
        return
    except IntegrityError as error:
        work.add("json-canonical", item.path, found=error)
        return
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind != descriptor.kind:
        work.add("media-type", item.path, descriptor.kind, "no artifact" if kind is None else kind)
    if isinstance(value, dict) and not isinstance(value.get("schema"), str):
        work.add("schema", item.path, "the name of its schema", value.get("schema"))
    for candidate in references.candidates(value) if b'"digest"' in data else ():
        work.references += 1
        problem = references.problem(candidate)
        if problem is not None:
            work.add(problem[0], item.path, problem[1], problem[2])
            continue
        known = work.known.get(candidate["digest"])
        named = f"{candidate['kind']} {candidate['digest']}"
        if known is None:
            # What an index that cannot be read names is not known; its own finding stands for all that follows.
            if not work.unread_indexes:
                work.add("dangling-reference", item.path, "an object that an index names", named)
        elif known.kind != candidate["kind"]:
            work.add("media-type", item.path, f"{known.kind} {known.digest}", named)
        elif known.size != candidate["size"]:
            work.add("size-mismatch", item.path, f"{known.size} bytes, {named}", candidate["size"])


def _stray(work: _Work, item: Item) -> None:
    """A file under a name that is no object's; it may hold the whole bytes of one."""
    digest = None
    if item.size <= work.limits.object_bytes and work.bytes + item.size <= work.limits.total_bytes:
        try:
            digest, _ = inventory.digest_of(work.root, item.path)
        except OSError as error:
            work.add("io-error", item.path, found=error.strerror)
            return
        work.bytes += item.size
    if digest is not None and digest in work.known:
        stage = min(work.stages[digest])
        work.add("object-path", item.path, f"{stage}/objects/{work.known[digest].path}", "the bytes of that object")
    else:
        work.add("extra-file", item.path, _ODD["stray"][1])


def _release(work: _Work) -> None:
    """The release's sections are the indexes beside it; else it is a release of what the store held before."""
    release = work.indexes.get("release", {})
    if "release" in work.indexes and "release" not in release:
        work.add("missing-entry", "release.json: release", "the release object")
    for name, descriptor in sorted(release.items()):
        stage = name.removeprefix("sections/")
        if descriptor.kind != "section" or stage == name or stage in work.unread_indexes:
            continue
        if stage not in work.indexes:
            work.add("missing-file", f"{stage}.json", f"the index that {name} of the release states")
            continue
        stated = Descriptor.of("section", encode("section", section_object(stage, work.indexes[stage])))
        if stated != descriptor:
            work.add("stale-release", f"{stage}.json", f"release.json: {name} {descriptor.digest}", stated.digest)
