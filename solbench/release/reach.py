"""Which object refers to which, and which names lead to it: from a release down, and from an object up.

Every object is checked as it is read, and nothing is followed that is a link.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from solbench import canonical
from solbench.errors import InputError, IntegrityError, UndecidedError
from solbench.release import inventory, references
from solbench.store import RAW_KINDS, Descriptor, Index, check, decode, parse_index

MAX_MANIFEST: Final = 64 << 20
MIN_PREFIX: Final = 4
_PREFIX = re.compile(r"(?:blake3:)?([0-9a-f]{4,64})\Z")
_MAX_NAMED = 10
# Why there is no regular file of a name: none at all, a link, a file for a folder, or (0) a pipe or a folder.
_ABSENT = frozenset({0, errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO})


@dataclass(frozen=True, order=True)
class Named:
    """One entry of one index."""

    stage: str
    name: str
    descriptor: Descriptor

    def __str__(self) -> str:
        return f"{self.stage}:{self.name}"


@dataclass(frozen=True)
class Catalogue:
    """All indexes of a store, and what they name by digest."""

    root: Path
    indexes: Mapping[str, Index]
    named: Mapping[str, tuple[Named, ...]] = field(repr=False)

    @property
    def release(self) -> Descriptor | None:
        """The release object's reference, where the store has one."""
        return self.indexes.get("release", {}).get("release")

    def entries(self) -> Iterator[Named]:
        for stage in sorted(self.indexes):
            for name, descriptor in sorted(self.indexes[stage].items()):
                yield Named(stage, name, descriptor)

    def descriptor(self, digest: str) -> Descriptor | None:
        """The reference under which an index names an object, or None."""
        names = self.named.get(digest)
        return names[0].descriptor if names else None

    def places(self, digest: str) -> list[str]:
        """Paths below the store where the object may lie: those of the indexes that name it, then all others."""
        path = Descriptor("", digest, 0).path
        first = [entry.stage for entry in self.named.get(digest, ())]
        stages = dict.fromkeys([*first, *sorted(self.indexes)])
        return [f"{stage}/objects/{path}" for stage in stages]


@dataclass(frozen=True)
class Node:
    """One object of a tree: ``parent`` is the digest of the one that it stands under, None for the root.

    ``missing``: why it cannot be read. ``below``: how many references were not followed, as the depth ends here.
    """

    descriptor: Descriptor
    depth: int
    parent: str | None
    missing: str | None = None
    below: int = 0


def catalogue(root: Path) -> Catalogue:
    """Every index below ``root``: :class:`InputError` where there is none, :class:`IntegrityError` for a bad one."""
    indexes: dict[str, Index] = {}
    named: dict[str, list[Named]] = {}
    for entry in inventory.items(root):
        if entry.names_index:
            if entry.what != "index":
                raise IntegrityError(f"{root / entry.path}: not a regular file; an index is never read through a link")
            indexes[entry.stage] = read_index(root, entry.path)
            for name, descriptor in sorted(indexes[entry.stage].items()):
                named.setdefault(descriptor.digest, []).append(Named(entry.stage, name, descriptor))
    if not indexes:
        raise InputError(str(root), "no index here; run `solbench pull` or `solbench repro`")
    return Catalogue(root, indexes, {digest: tuple(names) for digest, names in named.items()})


def read_index(root: Path, path: str) -> Index:
    """One index; :class:`UndecidedError` where it cannot be read, :class:`IntegrityError` where it is none."""
    where = str(root / path)
    try:
        data = inventory.read(root, path, MAX_MANIFEST)
    except OSError as error:
        raise UndecidedError(f"{where}: {error.strerror}") from None
    if data is None:
        raise UndecidedError(f"{where}: larger than {MAX_MANIFEST} bytes")
    return parse_index(data, where)


def find(store: Catalogue, text: str) -> str:
    """Digest of the one object that ``text`` names: a logical name, ``<stage>:<name>``, a digest or its first digits.

    :class:`InputError` where there is none, or several, which are then named.
    """
    by_name = {n.descriptor.digest: n for n in store.entries() if text in (n.name, str(n))}
    if by_name:
        return _only(text, {digest: str(entry) for digest, entry in by_name.items()})
    match = _PREFIX.match(text)
    if match is None:
        rule = f"no entry of an index has this name, and it is no digest, nor at least {MIN_PREFIX} of its first digits"
        raise InputError(text, rule)
    wanted = f"blake3:{match[1]}"
    digests = {d for d in store.named if d.startswith(wanted)}
    for stage in store.indexes:
        digests |= _files_with(store.root, stage, match[1])
    if not digests:
        raise InputError(text, "no object of this store has this digest")
    return _only(text, {digest: digest for digest in digests})


def _only(text: str, found: Mapping[str, str]) -> str:
    if len(found) > 1:
        names = sorted(found.values())
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        raise InputError(text, f"names {len(names)} objects: {', '.join(names[:_MAX_NAMED])}{more}")
    return next(iter(found))


def _files_with(root: Path, stage: str, digits: str) -> set[str]:
    """Digests of the files of a stage whose name begins with ``digits``, whether an index names them or not."""
    try:
        entries = inventory.scan(root, f"{stage}/objects/{digits[:2]}")
    except OSError:
        return set()
    names = {f"blake3:{digits[:2]}{entry.name}" for entry in entries if entry.name.startswith(digits[2:])}
    return {name for name in names if canonical.is_digest(name)}


def place(store: Catalogue, digest: str) -> str:
    """Path below the store of a file of the object's name.

    :class:`IntegrityError` where there is none, or only links and the like; :class:`UndecidedError` where that cannot
    be known.
    """
    unknown: OSError | None = None
    for path in store.places(digest):
        try:
            inventory.size(store.root, path)
        except OSError as error:
            if error.errno not in _ABSENT:
                unknown = error
            continue
        return path
    if unknown is not None:
        raise UndecidedError(f"{digest}: {unknown.strerror}")
    raise IntegrityError(f"{digest}: object is missing; run `solbench pull` or `solbench repro`")


def read(store: Catalogue, descriptor: Descriptor) -> bytes:
    """The checked bytes of an object; :class:`IntegrityError` where it is missing or others, else undecided."""
    path = place(store, descriptor.digest)
    where = str(store.root / path)
    try:
        data = inventory.read(store.root, path, MAX_MANIFEST)
    except OSError as error:
        raise UndecidedError(f"{where}: {error.strerror}") from None
    if data is None:
        raise UndecidedError(f"{where}: larger than {MAX_MANIFEST} bytes")
    check(data, descriptor, where)
    return data


def hashed(store: Catalogue, digest: str) -> tuple[str, int, bytes | None]:
    """Path, size and, up to ``MAX_MANIFEST``, the bytes of an object whose hash was checked, however large it is."""
    path = place(store, digest)
    where = str(store.root / path)
    entry = store.descriptor(digest)
    try:
        size = inventory.size(store.root, path)
        if entry is not None and size != entry.size:
            raise IntegrityError(f"{where}: {size} bytes, expected {entry.size}")
        actual, data = inventory.digest_of(store.root, path, MAX_MANIFEST)
    except OSError as error:
        raise UndecidedError(f"{where}: {error.strerror}") from None
    if actual != digest:
        raise IntegrityError(f"{where}: digest is {actual}; `solbench store fsck` looks at the rest")
    return path, size, data


def reference(store: Catalogue, digest: str) -> Descriptor:
    """The reference of an object; the kind of one that no index names is what it says, or empty."""
    entry = store.descriptor(digest)
    if entry is not None:
        return entry
    path, size, data = hashed(store, digest)
    try:
        value = canonical.loads(data or b"", path)
    except IntegrityError:
        value = None
    kind = value.get("kind") if isinstance(value, dict) else None
    return Descriptor(kind if isinstance(kind, str) else "", digest, size)


def below(store: Catalogue, descriptor: Descriptor) -> list[Descriptor]:
    """What an object refers to, each once, in the order of its text."""
    if not descriptor.kind or descriptor.kind in RAW_KINDS:
        return []
    data = read(store, descriptor)
    if b'"digest"' not in data:
        return []
    return list(dict.fromkeys(references.in_artifact(data, decode(data, descriptor))))


def tree(store: Catalogue, top: Descriptor, depth: int) -> list[Node]:
    """``top`` and what it refers to down to ``depth``, each object once, where it is nearest to ``top``; preorder."""
    nodes = {top.digest: Node(top, 0, None)}
    children: dict[str, list[str]] = {}
    level = [top]
    while level:
        following = []
        for descriptor in level:
            node = nodes[descriptor.digest]
            try:
                found = below(store, descriptor)
            except (IntegrityError, UndecidedError) as error:
                nodes[descriptor.digest] = Node(descriptor, node.depth, node.parent, str(error))
                continue
            if node.depth == depth:
                nodes[descriptor.digest] = Node(descriptor, depth, node.parent, None, len(found))
                continue
            for child in found:
                if child.digest not in nodes:
                    nodes[child.digest] = Node(child, node.depth + 1, descriptor.digest)
                    children.setdefault(descriptor.digest, []).append(child.digest)
                    following.append(child)
        level = following
    ordered, stack = [], [top.digest]
    while stack:
        digest = stack.pop()
        ordered.append(nodes[digest])
        stack.extend(reversed(children.get(digest, ())))
    return ordered


def closure(store: Catalogue, top: Descriptor) -> set[str]:
    """Digests of everything that ``top`` leads to, itself included; an error where one cannot be read."""
    seen = {top.digest}
    queue = [top]
    while queue:
        for child in below(store, queue.pop()):
            if child.digest not in seen:
                seen.add(child.digest)
                queue.append(child)
    return seen


@dataclass(frozen=True)
class Referrers:
    """By digest, the objects that refer to it; ``unread``: why some could not be read, of which nothing is known."""

    above: Mapping[str, tuple[Descriptor, ...]]
    unread: tuple[str, ...]

    def levels(self, digest: str) -> list[list[Descriptor]]:
        """What refers to an object, then what refers to that, and so on; each object once, where it is nearest."""
        seen = {digest}
        levels = []
        level = [digest]
        while level:
            found = {d.digest: d for one in level for d in self.above.get(one, ()) if d.digest not in seen}
            seen |= found.keys()
            level = sorted(found)
            if found:
                levels.append(sorted(found.values()))
        return levels


def referrers(store: Catalogue) -> Referrers:
    """Who refers to whom, over every object that an index names."""
    above: dict[str, list[Descriptor]] = {}
    unread = []
    for digest in sorted(store.named):
        descriptor = store.named[digest][0].descriptor
        try:
            found = below(store, descriptor)
        except (IntegrityError, UndecidedError) as error:
            unread.append(str(error))
            continue
        for child in found:
            above.setdefault(child.digest, []).append(descriptor)
    return Referrers({digest: tuple(parents) for digest, parents in above.items()}, tuple(unread))
