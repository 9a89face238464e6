"""A release wherever it is: in a bundle, below a DVC root, or at a revision of a checkout. Read only, never extracted.

Nothing is believed: each object is checked against its hash when it is read. What a place does not hold is said.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from solbench.errors import InputError, IntegrityError, UndecidedError
from solbench.model.release import Release, Section
from solbench.release import inventory
from solbench.release.findings import Findings
from solbench.release.root import STAGES
from solbench.release.source import Limits, Source, open_source
from solbench.store import RAW_KINDS, Descriptor, Index, check, decode, parse_index, without_kind

GIT: Final = "git:"
_LIMIT: Final = Limits().manifest_bytes
_GIT_S: Final = 60
# There is nothing of that name, or no regular file: a link, or a file for a folder.
_ABSENT: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO})
_PUBLISHED: Final = "release/published.json"


@dataclass(frozen=True)
class Contents:
    """One release. ``label``: where it was found. ``root``: its release object, None where there is none.

    ``indexes``: stage -> logical name -> reference, of all stages. ``release``: what the root says, None where its
    content is not here.
    """

    label: str
    root: Descriptor | None
    indexes: Mapping[str, Index]
    release: Mapping[str, Any] | None
    _read: Callable[[str, Descriptor], bytes | None] = field(repr=False)

    def load(self, stage: str, descriptor: Descriptor) -> dict[str, Any] | None:
        """An artifact, or None where its content is not here; :class:`IntegrityError` where it is not what its hash
        says."""
        if descriptor.kind in RAW_KINDS:
            return None
        data = self._read(stage, descriptor)
        return None if data is None else decode(data, descriptor, f"{self.label}: {descriptor.digest}")


@contextmanager
def opened(text: str, checkout: Path) -> Iterator[Contents]:
    """The release that ``text`` names: a bundle, a folder with ``store/``, such a ``store/`` itself, or
    ``git:<revision>`` of ``checkout``.

    :class:`InputError` where there is none, :class:`IntegrityError` where it is damaged.
    """
    if text.startswith(GIT):
        yield from_revision(text.removeprefix(GIT), checkout)
        return
    path = Path(text)
    if (path / "store").is_dir() and not (path / "release.json").exists():
        yield from_root(path)
        return
    if (path / f"{STAGES[0]}.json").is_file():
        yield from_store(path, text)
        return
    if not path.exists():
        raise InputError(text, "no such bundle or checkout; a revision is written git:<revision>")
    findings = Findings()
    source = open_source(path, Limits(), findings)
    try:
        proved = findings.level("safety")
        if source is None or proved == "bad":
            first = findings.sorted()[0]
            what = f"{text}: {first.code} {first.path}: run `solbench verify` on it"
            raise IntegrityError(what) if proved == "bad" else UndecidedError(what)
        yield _from_bundle(text, source)
    finally:
        if source is not None:
            source.close()


def from_root(root: Path, label: str | None = None) -> Contents:
    """The release below a DVC root, as its indexes name it."""
    return from_store(root / "store", label or str(root))


def from_store(store: Path, label: str) -> Contents:
    """The release in a folder of artifacts, as the indexes there name it."""
    indexes = {}
    for stage in (*STAGES, "release"):
        try:
            data = inventory.read(store, f"{stage}.json", _LIMIT)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
            data = None
        indexes[stage] = {} if data is None else parse_index(data, f"{label}: {store.name}/{stage}.json")
    if not any(indexes.values()):
        raise InputError(str(store), "no index here; run `solbench pull` or `solbench repro`")
    found = indexes.pop("release").get("release")
    read = _of_store(store)
    data = None if found is None else read("release", found)
    return Contents(label, found, indexes, _release(data, found, label), read)


def from_revision(revision: str, checkout: Path) -> Contents:
    """The release whose indexes git tracks at ``revision``; objects are read from the store on disk, as far as it still
    holds them."""
    label = GIT + revision
    commit = _git(checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise InputError(label, f"no such revision of {checkout}, or no git there")
    name = commit.decode().strip()
    indexes = {}
    for stage in STAGES:
        data = _git(checkout, "show", f"{name}:./store/{stage}.json")
        indexes[stage] = {} if data is None else parse_index(data, f"{label}: store/{stage}.json")
    if not any(indexes.values()):
        raise InputError(label, "tracks no index below store/")
    data = _git(checkout, "show", f"{name}:./{_PUBLISHED}")
    found = None if data is None else Descriptor.of("release", data)
    return Contents(label, found, indexes, _release(data, found, label), _of_store(checkout / "store"))


def _from_bundle(label: str, source: Source) -> Contents:
    def read(stage: str, descriptor: Descriptor) -> bytes | None:
        name = f"objects/{descriptor.path}"
        if source.sizes.get(name) != descriptor.size:
            raise IntegrityError(f"{label}: {name}: missing, or of another size; run `solbench verify` on it")
        if descriptor.size > _LIMIT:
            raise UndecidedError(f"{label}: {name}: {descriptor.size} bytes are too many to compare")
        data = source.read(name)
        check(data, descriptor, f"{label}: {name}")
        return data

    size = source.sizes.get("release.json")
    if size is None or size > _LIMIT:
        raise InputError(label, "has no release.json of a readable size: not a bundle")
    data = source.read("release.json")
    root = Descriptor.of("release", data)
    release = _release(data, root, label)
    assert release is not None
    indexes = {}
    for stage, entry in release["sections"].items():
        reference = Descriptor.parse(entry, f"{label}: sections.{stage}")
        section = decode(read("release", reference) or b"", reference, f"{label}: sections.{stage}")
        indexes[stage] = _section(section, f"{label}: sections.{stage}")
    return Contents(label, root, {stage: indexes.get(stage, {}) for stage in STAGES}, release, read)


def _section(value: Mapping[str, Any], where: str) -> Index:
    try:
        entries = Section.load(without_kind(value), where).as_dict()["entries"]
    except InputError as error:
        raise IntegrityError(str(error)) from None
    return {name: Descriptor.parse(entry, f"{where}: {name}") for name, entry in entries.items()}


def _release(data: bytes | None, descriptor: Descriptor | None, label: str) -> Mapping[str, Any] | None:
    if data is None or descriptor is None:
        return None
    value = decode(data, descriptor, f"{label}: release")
    try:
        return Release.load(without_kind(value), f"{label}: release").as_dict()
    except InputError as error:
        raise IntegrityError(str(error)) from None


def _of_store(store: Path) -> Callable[[str, Descriptor], bytes | None]:
    def read(stage: str, descriptor: Descriptor) -> bytes | None:
        path = f"{stage}/objects/{descriptor.path}"
        try:
            data = inventory.read(store, path, _LIMIT)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        if data is None:
            raise UndecidedError(f"{store / path}: too many bytes to compare")
        check(data, descriptor, str(store / path))
        return data

    return read


def _git(checkout: Path, *arguments: str) -> bytes | None:
    """What git prints, or None where it refuses."""
    command = ["git", "-c", f"safe.directory={checkout.resolve()}", "-C", str(checkout), *arguments]
    try:
        return subprocess.run(command, capture_output=True, timeout=_GIT_S, check=True, stdin=subprocess.DEVNULL).stdout
    except FileNotFoundError:
        raise UndecidedError("git is not installed; name a bundle or a checkout") from None
    except subprocess.CalledProcessError:
        return None
    except subprocess.TimeoutExpired:
        raise UndecidedError(f"git did not answer within {_GIT_S} s") from None
