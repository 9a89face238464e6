"""A DVC root on disk: where its problems, store, measurements and memo are, and how a stage replaces its output.

Two exist: the checkout (the *published* release) and ``local/`` inside it (what this machine measures).
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from solbench import store
from solbench.errors import InputError, UndecidedError
from solbench.model.record import Value
from solbench.yaml12 import load_yaml


class Parameters(Value):
    """``params.yaml``: everything a release depends on beside its inputs."""

    release: Literal["published", "local"]
    path: Literal["aten", "torchview"]
    targets: tuple[str, ...]
    # Memory class (GiB) for which LLM_CORE's workloads are generated, a target; without any it is left out.
    capacity_gib: dict[str, int]
    protocol: Literal["quick", "full"]
    max_call_s: float = Field(gt=0)
    budget_s: float = Field(gt=0)


@dataclass(frozen=True)
class Workspace:
    """Paths below one DVC root."""

    root: Path
    checkout: Path

    @classmethod
    def at(cls, root: Path) -> Workspace:
        """The workspace whose DVC root is ``root``; ``local`` finds its checkout one level up."""
        root = root.resolve()
        checkout = root.parent if root.name == "local" and (root.parent / "problems").is_dir() else root
        if not (checkout / "problems").is_dir():
            raise InputError(str(root), "no problems/ here; run in a checkout of the project, or pass --root")
        return cls(root, checkout)

    @property
    def problems(self) -> Path:
        return self.checkout / "problems"

    @property
    def store(self) -> store.Store:
        return store.Store(self.root / "store")

    @property
    def memo(self) -> Path:
        return self.checkout / ".solbench" / "memo"

    def parameters(self) -> Parameters:
        path = self.root / "params.yaml"
        return Parameters.load(load_yaml(path), str(path))


@dataclass
class StageOutput:
    """Objects and index entries that a stage has made so far."""

    objects: Path
    index: store.Index = field(default_factory=dict)

    def put(self, name: str, kind: str, value: Mapping[str, Any]) -> store.Descriptor:
        """Store one artifact under a logical name; a name is used once."""
        return self.put_bytes(name, kind, store.encode(kind, value))

    def put_bytes(self, name: str, kind: str, data: bytes) -> store.Descriptor:
        if name in self.index:
            raise InputError(name, "two artifacts of one stage have the same name")
        descriptor = store.put(self.objects, kind, data)
        self.index[name] = descriptor
        return descriptor


@contextmanager
def stage_output(root: Path, stage: str) -> Iterator[StageOutput]:
    """Collect a stage's output in a temporary folder; on success it replaces ``<root>/<stage>`` and its index.

    A failure or a kill before the end leaves the old output as it was, and a folder that the next run sweeps.
    """
    root.mkdir(parents=True, exist_ok=True)
    for stale in root.glob(f".{stage}-*"):
        shutil.rmtree(stale, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{stage}-", dir=root))
    try:
        output = StageOutput(temporary / "objects")
        output.objects.mkdir()
        yield output
        replace_folder(temporary, root / stage)
        write_file(root / f"{stage}.json", store.index_bytes(output.index))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def replace_folder(temporary: Path, final: Path) -> None:
    """Put ``temporary`` in the place of ``final``, whatever was there."""
    os.chmod(temporary, 0o755)
    if final.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
        os.rename(final, old / "was")
        os.rename(temporary, final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(temporary, final)


def require_absent(folder: Path) -> None:
    """Raise :class:`InputError` unless ``folder`` is not there and the folder that it would be in is."""
    if os.path.lexists(folder):
        raise InputError(str(folder), "exists already; name a new folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(str(folder.parent), "no such folder")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary sibling that takes the name ``folder``, which is not there yet, once the block ends well.

    However the block ends else, nothing is left; only a kill leaves the sibling, whose name starts with a dot.
    """
    require_absent(folder)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    except OSError as error:
        raise InputError(str(folder), f"cannot be made: {error.strerror}") from None
    try:
        yield temporary
        temporary.chmod(0o755)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def require_writable(path: Path, where: str) -> None:
    """Refuse, before a long work, a file that could not be written after it; ``where`` names it to the user.

    :class:`InputError` when something else than a file is there, :class:`UndecidedError` when nothing can be written in
    its folder, or in the nearest one that there is.
    """
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise InputError(where, "is there and no file; name a file")
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    with writing(where), tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"\n")
        probe.flush()
        os.fsync(probe.fileno())


@contextmanager
def writing(where: str) -> Iterator[None]:
    """What cannot be written is one line that names it."""
    try:
        yield
    except OSError as error:
        hint = "; free some space and run again" if error.errno == errno.ENOSPC else ""
        raise UndecidedError(f"{where}: cannot be written: {error.strerror or error}{hint}") from None


def write_file(path: Path, data: bytes) -> None:
    """Write ``path`` whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
