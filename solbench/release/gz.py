"""The one gzip coding that we write around a tar archive, and bounded reading of it, from front to back or anywhere.

One member (RFC 1952): our ten header bytes, DEFLATE as zlib codes it at one level and one memory level, CRC-32, size.
DEFLATE is malleable: other codings, and other bits of padding, unpack to the same bytes. So whoever reads an archive to
its end also learns whether this machine's zlib makes the very same bytes of what was unpacked.
"""

from __future__ import annotations

import bisect
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from solbench.release.members import ChangedError, RefusedError
from solbench.release.plain import PlainFile

MAGIC: Final = b"\x1f\x8b"
# Method DEFLATE, no flags, no time, no word about the level, made on an unknown system.
HEADER: Final = MAGIC + b"\x08\0" + bytes(4) + b"\0\xff"
TRAILER: Final = struct.Struct("<2I")
LEVEL: Final = 6
MEMORY_LEVEL: Final = 8
# An archive may always unpack to this much, however small it is. Bytes.
EXPANSION_SLACK: Final = 1 << 20

_WINDOW_BITS = -15  # DEFLATE without a frame
_FED = 1 << 16  # zlib is fed this much at a time, so that its output depends on the bytes alone
_READ = 1 << 14
_PIECE = 1 << 17
# A place to go on unpacking from costs about 40 KB.
_MAX_PLACES = 512
_FIRST_SPACING = 1 << 17


def pack(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The gzip file of the bytes given, a piece at a time."""
    yield HEADER
    coder, crc, size = _Coder(), 0, 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
        size += len(piece)
        yield coder.code(piece)
    yield coder.end()
    yield TRAILER.pack(crc, size & 0xFFFFFFFF)


class _Coder:
    """DEFLATE as we write it; bytes in whatever pieces give the same bytes."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(LEVEL, zlib.DEFLATED, _WINDOW_BITS, MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY)
        self._waiting = bytearray()

    def code(self, piece: bytes) -> bytes:
        self._waiting += piece
        whole = len(self._waiting) // _FED * _FED
        coded = [self._zlib.compress(self._waiting[at : at + _FED]) for at in range(0, whole, _FED)]
        del self._waiting[:whole]
        return b"".join(coded)

    def end(self) -> bytes:
        return self._zlib.compress(self._waiting) + self._zlib.flush()


@dataclass
class _Place:
    """Where unpacking goes on: offset of the next byte unpacked, of the next byte to feed, and zlib's state."""

    unpacked: int
    packed: int
    inflater: Any
    # Unpacked and not yet taken: what of it lies behind ``taken``.
    ready: bytes = b""
    taken: int = 0

    def take(self, size: int) -> bytes:
        piece = self.ready[self.taken : self.taken + size]
        self.taken += len(piece)
        self.unpacked += len(piece)
        return piece

    def put(self, piece: bytes) -> None:
        self.ready, self.taken = piece, 0

    @property
    def empty(self) -> bool:
        return self.taken == len(self.ready)

    def copy(self) -> _Place:
        return _Place(self.unpacked, self.packed, self.inflater.copy())


class Unpacked:
    """What a gzip file of ours unpacks to.

    First :meth:`read` and :meth:`skip` from front to back, then :meth:`finish`, each of which may raise
    :class:`RefusedError`; after that :meth:`pieces` from anywhere. Whatever its size, it holds a few hundred states of
    zlib (some 40 KB each) and a few pieces. ``max_bytes``: what it may unpack to; ``max_expansion``: the same as a
    multiple of its size.
    """

    def __init__(self, file: PlainFile, max_bytes: int, max_expansion: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._max_expansion = max_expansion
        self._front = _Place(0, len(HEADER), zlib.decompressobj(_WINDOW_BITS))
        self._places = [self._front.copy()]
        self._spacing = _FIRST_SPACING
        self._end = 0  # bytes unpacked so far by the first pass
        self._crc = 0
        self._coder: _Coder | None = _Coder()
        self._compared = len(HEADER)
        self._differs_at: int | None = None
        self._resting: _Place | None = None
        self._lock = threading.Lock()

    # -- once, from front to back

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer only at the end."""
        found = []
        while size and (piece := self._next(size)):
            size -= len(piece)
            found.append(piece)
        return b"".join(found)

    def skip(self, size: int) -> None:
        """Go on ``size`` bytes, or to the end."""
        while size and (piece := self._next(size)):
            size -= len(piece)

    def finish(self) -> int | None:
        """Check the end: None, or the offset of the first byte that zlib would have written otherwise here."""
        if self._next(1):
            raise RefusedError("archive-structure", "the end of the archive", "more data")
        end = self._front.packed - len(self._front.inflater.unused_data)
        trailer, expected = self._file.at(end, TRAILER.size), TRAILER.pack(self._crc, self._end & 0xFFFFFFFF)
        if trailer != expected:
            raise RefusedError("archive-structure", f"CRC-32 and size {expected.hex()}", trailer.hex() or "nothing")
        if end + TRAILER.size != self._file.size:
            raise RefusedError("archive-structure", f"{end + TRAILER.size} bytes", self._file.size)
        if self._coder is not None:
            self._compare(self._coder.end())
        if self._differs_at is None and self._compared != end:
            self._differs_at = min(self._compared, end)
        self._coder = None
        return self._differs_at

    def _next(self, size: int) -> bytes:
        front = self._front
        if self._end == 0 and (found := self._file.at(0, len(HEADER))) != HEADER:
            raise RefusedError("archive-structure", f"our gzip header {HEADER.hex()}", found.hex())
        if front.empty:
            try:
                piece = self._inflate(front)
            except zlib.error as error:
                raise RefusedError("archive-structure", "DEFLATE data", error) from None
            if not piece and not front.inflater.eof:
                raise RefusedError("archive-structure", "DEFLATE data to its end", f"cut off at {self._file.size}")
            self._heed(piece)
            front.put(piece)
        return front.take(size)

    def _heed(self, piece: bytes) -> None:
        """All that the first pass does with each piece: limits, checksum, comparison, a place to come back to."""
        self._end += len(piece)
        if self._end > self._max_bytes:
            raise RefusedError("limit-total", f"at most {self._max_bytes} bytes unpacked", "more")
        if self._end > self._max_expansion * self._file.size + EXPANSION_SLACK:
            raise RefusedError(
                "limit-expansion", f"at most {self._max_expansion} times {self._file.size} bytes", "more"
            )
        self._crc = zlib.crc32(piece, self._crc)
        if self._coder is not None:
            self._compare(self._coder.code(piece))
        front = self._front
        # With nothing left of what zlib was fed, a copy of its state is all that it takes to go on.
        inflater = front.inflater
        if not inflater.unconsumed_tail and not inflater.eof and self._end - self._places[-1].unpacked >= self._spacing:
            self._places.append(_Place(self._end, front.packed, inflater.copy()))
            if len(self._places) > _MAX_PLACES:
                del self._places[1::2]
                self._spacing *= 2

    def _compare(self, coded: bytes) -> None:
        found = self._file.at(self._compared, len(coded))
        if found == coded:
            self._compared += len(coded)
            return
        same = next((at for at, pair in enumerate(zip(found, coded)) if pair[0] != pair[1]), len(found))
        self._differs_at = self._compared + same
        self._coder = None

    def close(self) -> None:
        self._file.close()

    # -- then, from anywhere

    def pieces(self, offset: int, size: int) -> Iterator[bytes]:
        """``size`` bytes from ``offset``, a piece at a time; :class:`ChangedError` where they are there no more."""
        place = self._go_to(offset)
        try:
            while place.unpacked < offset:
                self._more(place, offset - place.unpacked)
            while size:
                piece = self._more(place, size)
                size -= len(piece)
                yield piece
        except zlib.error:
            raise ChangedError(0, "changed while it was verified") from None
        with self._lock:
            self._resting = place

    def _go_to(self, offset: int) -> _Place:
        """The nearest place before ``offset``: where the last read ended, or one kept from the first pass."""
        nearest = self._places[bisect.bisect_right(self._places, offset, key=lambda place: place.unpacked) - 1]
        with self._lock:
            resting, self._resting = self._resting, None
        if resting is not None and nearest.unpacked <= resting.unpacked <= offset:
            return resting
        return nearest.copy()

    def _more(self, place: _Place, size: int) -> bytes:
        if place.empty:
            place.put(self._inflate(place))
            if place.empty:
                raise ChangedError(0, "shrank while it was read")
        return place.take(size)

    def _inflate(self, place: _Place) -> bytes:
        """The next piece, at most ``_PIECE`` bytes; nothing at the end of the data, or of the file before that."""
        inflater = place.inflater
        while not inflater.eof:
            fed = inflater.unconsumed_tail
            if not fed:
                fed = self._file.at(place.packed, _READ)
                place.packed += len(fed)
            piece: bytes = inflater.decompress(fed, _PIECE)
            if piece or not fed:
                return piece
        return b""
