from __future__ import annotations

import os
import socket
import struct

import pytest

from solbench.evaluate import frames


def test_a_frame_and_its_descriptors_arrive() -> None:
    ours, theirs = socket.socketpair()
    handle = os.memfd_create("x")
    os.write(handle, b"hello")
    frames.send(ours, {"op": "go", "sample": 3}, (handle,))
    received = frames.receive(theirs)
    assert received is not None
    message, (copy,) = received
    assert message == {"op": "go", "sample": 3}
    assert os.pread(copy, 10, 0) == b"hello"
    ours.close()
    assert frames.receive(theirs) is None


def test_frames_in_pieces() -> None:
    data = frames.encode({"op": "a"}) + frames.encode({"op": "b"})
    assembler = frames.Assembler()
    found = []
    for byte in data:
        assembler.feed(bytes([byte]))
        while (frame := assembler.pop()) is not None:
            found.append(frame)
    assert found == [{"op": "a"}, {"op": "b"}] and not assembler.pending


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", frames.WORKER_LIMIT + 1),
        struct.pack(">I", 2) + b"{]",
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 2) + b"\xff\xfe",
        struct.pack(">I", 11) + b'{"a": NaN }',
        struct.pack(">I", 20_000) + b"[" * 20_000,
    ],
    ids=["too long", "not json", "not an object", "not utf-8", "nan", "deep"],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    assembler = frames.Assembler()
    assembler.feed(data)
    with pytest.raises(frames.FrameError):
        assembler.pop()
