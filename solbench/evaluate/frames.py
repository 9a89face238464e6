"""Messages between our processes: a four-byte length, then one JSON object. Standard library only.

The receiver bounds the size before it reads a body, and takes nothing but a JSON object: what a hostile peer can
send is at worst a wrong object. File descriptors travel beside a frame, from the orchestrator only.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

WORKER_LIMIT = 1 << 16
TRUSTED_LIMIT = 1 << 28
_HEADER = struct.Struct(">I")
_MAX_FDS = 4

Message = dict[str, Any]


class FrameError(Exception):
    """The peer sent something that is not a frame."""


def encode(message: Message) -> bytes:
    """Bytes of one frame."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    return _HEADER.pack(len(body)) + body


def send(channel: socket.socket, message: Message, fds: tuple[int, ...] = ()) -> None:
    """Send one frame; ``fds`` are duplicated into the receiver."""
    data = encode(message)
    if fds:
        sent = socket.send_fds(channel, [data], list(fds))
        data = data[sent:]
    channel.sendall(data)


def receive(channel: socket.socket, limit: int = TRUSTED_LIMIT) -> tuple[Message, list[int]] | None:
    """Next frame of a blocking channel with the descriptors sent beside it, or None when the peer has gone."""
    fds: list[int] = []
    header = _read(channel, _HEADER.size, fds)
    if header is None:
        return None
    (size,) = _HEADER.unpack(header)
    if size > limit:
        raise FrameError(f"a frame of {size} bytes")
    body = _read(channel, size, fds)
    return None if body is None else (decode(body), fds)


def decode(body: bytes) -> Message:
    """The JSON object of a frame's body."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise FrameError("not a JSON object")
    return value


class Assembler:
    """Frames out of the pieces that a non-blocking channel delivers."""

    def __init__(self, limit: int = WORKER_LIMIT) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def pop(self) -> Message | None:
        """The next whole frame, or None."""
        if len(self._data) < _HEADER.size:
            return None
        (size,) = _HEADER.unpack_from(self._data)
        if size > self._limit:
            raise FrameError(f"a frame of {size} bytes")
        end = _HEADER.size + size
        if len(self._data) < end:
            return None
        body = bytes(self._data[_HEADER.size : end])
        del self._data[:end]
        return decode(body)

    @property
    def pending(self) -> bool:
        """Whether bytes are left that nobody has taken."""
        return bool(self._data)


def _read(channel: socket.socket, size: int, fds: list[int]) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece, received, _, _ = socket.recv_fds(channel, min(size - len(data), 1 << 20), _MAX_FDS)
        fds += received
        if not piece:
            return None
        data += piece
    return bytes(data)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
