"""Reading of an open regular file: from front to back once, or anywhere; never beyond what was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator

from solbench.release.members import CHUNK, ChangedError, RefusedError


class PlainFile:
    """An open file of ``size`` bytes; :meth:`read` and :meth:`skip` move on from the front, the others do not."""

    def __init__(self, handle: int, size: int) -> None:
        self.size = size
        self._handle = handle
        self._position = 0

    def at(self, offset: int, size: int) -> bytes:
        """``size`` bytes from ``offset``; fewer only at the end."""
        found = []
        while size > 0 and (piece := os.pread(self._handle, min(size, CHUNK), offset)):
            found.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(found)

    def pieces(self, offset: int, size: int) -> Iterator[bytes]:
        """The same a piece at a time; :class:`ChangedError` where there is less."""
        while size:
            piece = os.pread(self._handle, min(CHUNK, size), offset)
            if not piece:
                raise ChangedError(0, "shrank while it was read")
            offset += len(piece)
            size -= len(piece)
            yield piece

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer only at the end."""
        found = self.at(self._position, size)
        self._position += len(found)
        return found

    def skip(self, size: int) -> None:
        """Go on ``size`` bytes, maybe beyond the end."""
        self._position += size

    def finish(self) -> None:
        """:class:`RefusedError` unless the end has been reached."""
        if self._position != self.size:
            raise RefusedError("archive-structure", f"{self._position} bytes", self.size)

    def close(self) -> None:
        os.close(self._handle)
