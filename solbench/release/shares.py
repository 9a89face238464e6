"""Work over many items in processes forked from this one: each knows what the parent knows, and answers through a pipe.

Nothing is written, no file is named, nothing is started but copies of this process; the answer is the same with any
number of them, and where one cannot be had or does not answer, this process does its share.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

MAX_WORKERS: Final = 4
# For fewer items a copy of the process costs more than it brings.
FEWEST: Final = 64

T = TypeVar("T")


def workers_for(items: int, fewest: int | None = None) -> int:
    """How many processes to use, this one included: one a processor that we may use, where forking is safe.

    ``fewest``: for fewer items only this one; by default :data:`FEWEST`.
    """
    if (
        items < (FEWEST if fewest is None else fewest)
        or not hasattr(os, "sched_getaffinity")
        or threading.active_count() > 1
    ):
        return 1
    return min(MAX_WORKERS, len(os.sched_getaffinity(0)))


def over(items: Sequence[T], work: Callable[[T], Any], workers: int) -> list[Any]:
    """``work`` of every item, in the order of the items. It returns a JSON value, and changes nothing that matters."""
    results: list[Any] = [None] * len(items)
    children: list[tuple[int, int, slice]] = []
    try:
        for number in range(1, workers):
            share = slice(number, None, workers)
            with suppress(OSError):  # no process or no pipe to be had
                children.append((*_forked(items[share], work), share))
        taken = {position for *_, share in children for position in range(len(items))[share]}
        for position, item in enumerate(items):
            if position not in taken:
                results[position] = work(item)
        for _, pipe, share in children:
            answers = _answers(pipe, len(items[share]))
            results[share] = answers if answers is not None else [work(item) for item in items[share]]
    finally:
        for child, pipe, _ in children:
            os.close(pipe)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return results


def _forked(items: Sequence[T], work: Callable[[T], Any]) -> tuple[int, int]:
    """(process, pipe that its answer comes out of)."""
    out, into = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(out)
        os.close(into)
        raise
    if child:
        os.close(into)
        return child, out
    try:
        os.close(out)
        answer = json.dumps([work(item) for item in items]).encode()
        while answer:
            answer = answer[os.write(into, answer) :]
    finally:
        # Whatever happened: nothing of the parent's is run here, flushed or printed. Half an answer is none.
        os._exit(0)


def _answers(pipe: int, count: int) -> list[Any] | None:
    pieces = []
    while piece := os.read(pipe, 1 << 16):
        pieces.append(piece)
    try:
        answers = json.loads(b"".join(pieces))
    except ValueError:
        return None
    return answers if isinstance(answers, list) and len(answers) == count else None
