"""A file of lines that grows under a lock: each line is appended whole and synced, so that a kill loses at most the one
that is being written."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from solbench.errors import UndecidedError
from solbench.workspace import writing


class Growing:
    """``path``, opened or begun, alone: :class:`UndecidedError` where another process has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = 0
        with writing(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = lock(path)

    def append(self, line: bytes) -> None:
        """Add a line and sync it. :class:`UndecidedError` when it cannot be written; nothing of it stays."""
        with writing(str(self.path)):
            try:
                _write(self._handle, line)
                os.fsync(self._handle)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._handle, self._size)
                raise
        self._size += len(line)

    def lines(self) -> bytes:
        """What is there, without a torn last line."""
        return whole_lines(self._handle)

    def rewrite(self, content: bytes) -> None:
        """Have this content, whole or not at all; what is the same already is not written."""
        if content != self.lines() or os.fstat(self._handle).st_size != len(content):
            self._replace(content)
        self._size = len(content)

    def _replace(self, content: bytes) -> None:
        """The lock is held on the new file before it is there."""
        # One fixed name: only who holds the lock writes it, and what a kill leaves of it is overwritten.
        new = self.path.with_name(f"{self.path.name}.new")
        with writing(str(self.path)):
            handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                _write(handle, content)
                os.fsync(handle)
                os.replace(new, self.path)
            except BaseException:
                os.close(handle)
                os.unlink(new)
                raise
        os.close(self._handle)
        self._handle = handle

    def rename(self, target: Path) -> None:
        """Give the file its last name."""
        os.replace(self.path, target)
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        """Let go of the file; an empty one is removed."""
        if self._handle < 0:
            return
        with contextlib.suppress(OSError):
            if os.fstat(self._handle).st_size == 0:
                os.unlink(self.path)
        os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def lock(path: Path, flags: int = os.O_CREAT) -> int:
    """Descriptor of ``path``, locked; :class:`UndecidedError` when another process has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been replaced between opening and locking it.
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise UndecidedError(f"{path}: another process is measuring into it") from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """Descriptor of a file that is there, locked for as long."""
    handle = lock(path, 0)
    try:
        yield handle
    finally:
        os.close(handle)


def whole_lines(handle: int) -> bytes:
    """Content of an open file without a torn last line."""
    data = b""
    while piece := os.pread(handle, 1 << 24, len(data)):
        data += piece
    return data[: data.rfind(b"\n") + 1]


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
