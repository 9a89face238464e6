"""Objects below a local folder as DVC lays them out: DVC's cache, and a remote that is a folder."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from solbench.errors import IntegrityError, UndecidedError
from solbench.remotes.wanted import AlteredError, Intake, Wanted
from solbench.workspace import writing

# Without O_NONBLOCK a pipe that lies there would make us wait for a writer.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


class MissingError(IntegrityError):
    """The object is not there."""


def read_file(path: Path, feed: Callable[[bytes], object]) -> None:
    """Feed the bytes of a regular file; :class:`OSError`, whose number is ELOOP where it is a link or no file."""
    handle = os.open(path, _OPEN | os.O_NOFOLLOW)
    with open(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.ELOOP, "not a regular file", str(path))
        while piece := file.read(_CHUNK):
            feed(piece)


class Folder:
    """``<path>/<2 hex>/<the rest>``. Nothing gets a name there before all its bytes were found right.

    ``owner`` names the folder in which this workspace keeps what is not finished: after a kill the next run finds it.
    """

    writable = True
    retries = 0

    def __init__(self, path: Path, owner: str) -> None:
        self.path = path
        self._unfinished = path / f".incoming-{owner}"

    def file(self, md5: str) -> Path:
        return self.path / md5[:2] / md5[2:]

    def size(self, wanted: Wanted) -> int | None:
        """Bytes; :class:`MissingError`, or :class:`OSError` where it cannot be asked."""
        try:
            status = os.stat(self.file(wanted.md5))
        except (FileNotFoundError, NotADirectoryError):
            raise MissingError(f"{wanted}: missing") from None
        if not stat.S_ISREG(status.st_mode):
            raise AlteredError(f"{wanted}: not a regular file")
        return status.st_size

    def read(self, wanted: Wanted, feed: Callable[[bytes], object]) -> None:
        """Feed all bytes; :class:`MissingError`, or :class:`OSError` where they cannot be read."""
        self.size(wanted)
        try:
            # A remote may well be a folder of links to where the data is; its bytes decide.
            read_file(self.file(wanted.md5).resolve(), feed)
        except FileNotFoundError:
            raise MissingError(f"{wanted}: missing") from None

    def put(self, wanted: Wanted, source: Path) -> None:
        """Copy the file ``source``; :class:`AlteredError` where it is not what is wanted."""
        with self.incoming(wanted) as feed:
            read_file(source, feed)

    def holds(self, wanted: Wanted) -> bool:
        """Whether it is there with the right bytes."""
        try:
            return self._hashed(wanted)
        except AlteredError:
            return False

    def sound(self, wanted: Wanted) -> bool:
        """As :meth:`holds`; something else under its name is removed."""
        try:
            return self._hashed(wanted)
        except AlteredError:
            path = self.file(wanted.md5)
            with writing(str(path)):
                _remove(path)
            return False

    def _hashed(self, wanted: Wanted) -> bool:
        path = self.file(wanted.md5)
        intake = Intake(wanted, md5=False)
        try:
            read_file(path, intake.feed)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise AlteredError(f"{path}: not a regular file") from None
            raise UndecidedError(f"{path}: cannot be read: {error.strerror}") from None
        intake.finish()
        return True

    @contextmanager
    def incoming(self, wanted: Wanted) -> Iterator[Callable[[bytes], None]]:
        """Feed the bytes of an object; when the block ends and they are right, it is there, else nothing is.

        Not synced to the disk one by one: whoever uses an object here hashes it first.
        """
        final, temporary = self.file(wanted.md5), self._unfinished / wanted.md5
        intake = Intake(wanted)
        with writing(str(final)):
            self._unfinished.mkdir(parents=True, exist_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

        def feed(piece: bytes) -> None:
            intake.feed(piece)
            with writing(str(final)):
                view = memoryview(piece)
                while view:
                    view = view[os.write(handle, view) :]

        try:
            try:
                yield feed
                intake.finish()
            finally:
                os.close(handle)
            with writing(str(final)):
                os.chmod(temporary, 0o444)
                final.parent.mkdir(parents=True, exist_ok=True)
                os.replace(temporary, final)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what this workspace left unfinished."""
        shutil.rmtree(self._unfinished, ignore_errors=True)

    def require(self) -> None:
        """:class:`UndecidedError` where the folder itself is not there."""
        if not self.path.is_dir():
            raise UndecidedError(f"{self.path}: no such folder; is it mounted, was anything pushed there?")

    def close(self) -> None:
        self.sweep()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
