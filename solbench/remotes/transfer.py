"""Many objects at a time: asked for, fetched into the cache, sent; each checked on its way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Literal, TypeVar

from solbench.errors import SolbenchError, UndecidedError
from solbench.remotes.connection import Remote
from solbench.remotes.folder import Folder, MissingError
from solbench.remotes.protocols import RetryError, Web, failures
from solbench.remotes.wanted import AlteredError, Intake, Wanted

T = TypeVar("T")
State = Literal["there", "missing", "altered", "unknown"]
Progress = Callable[[str, int, int], None]

# So many answers that say nothing, one after the other, and the rest is not asked for.
_GIVE_UP = 16


@dataclass(frozen=True)
class Answer:
    """What a remote says about one object; ``why`` where it is not simply there."""

    wanted: Wanted
    state: State
    why: str = ""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def ask(remote: Remote, wanted: Sequence[Wanted], *, full: bool = False, progress: Progress = silent) -> list[Answer]:
    """Whether the remote has each object: by existence and size, or with ``full`` by reading and hashing it.

    The answers are in the order of ``wanted``. After many failures in a row the rest is not asked for.
    """
    answers: dict[Wanted, Answer] = {}
    silence = 0

    def one(item: Wanted) -> Answer:
        nonlocal silence
        if silence >= _GIVE_UP:
            return Answer(item, "unknown", "not asked for")
        answer = _answer(remote, item, full)
        silence = silence + 1 if answer.state == "unknown" else 0
        return answer

    for answer in _each(remote, one, wanted, "asked for", progress):
        answers[answer.wanted] = answer
    return [answers[item] for item in wanted]


def fetch(remote: Remote, cache: Folder, wanted: Sequence[Wanted], progress: Progress = silent) -> None:
    """Fetch objects into the cache. The first that is missing, altered or cannot be had ends it; what came stays."""

    def one(item: Wanted) -> None:
        _patiently(remote, item, lambda: _into(remote, cache, item))

    for _ in _each(remote, one, wanted, "fetched", progress):
        pass


def fetch_listing(remote: Remote, wanted: Wanted) -> bytes:
    """The bytes of a listing, right by its name; :class:`MissingError`, :class:`AlteredError`, or undecided."""

    def read() -> bytes:
        intake, pieces = Intake(wanted), []

        def feed(piece: bytes) -> None:
            intake.feed(piece)
            pieces.append(piece)

        remote.objects.read(wanted, feed)
        intake.finish()
        return b"".join(pieces)

    return _patiently(remote, wanted, read)


def send(remote: Remote, cache: Folder, wanted: Sequence[Wanted], progress: Progress = silent) -> None:
    """Send objects, all sound in the cache; the first that does not arrive ends it."""
    objects = remote.objects
    assert not isinstance(objects, Web)

    def one(item: Wanted) -> None:
        _patiently(remote, item, lambda: objects.put(item, cache.file(item.md5)))

    for _ in _each(remote, one, wanted, "sent", progress):
        pass


def _answer(remote: Remote, item: Wanted, full: bool) -> Answer:
    try:
        if full:
            _patiently(remote, item, lambda: _hashed(remote, item))
            return Answer(item, "there")
        size = _patiently(remote, item, lambda: remote.objects.size(item))
    except MissingError:
        return Answer(item, "missing")
    except AlteredError as error:
        return Answer(item, "altered", str(error))
    except UndecidedError as error:
        return Answer(item, "unknown", str(error))
    if size is not None and (size > item.limit or item.size not in (None, size)):
        expected = f"{item.size}" if item.size is not None else f"at most {item.limit}"
        return Answer(item, "altered", f"{item}: {size} bytes, expected {expected}")
    return Answer(item, "there")


def _hashed(remote: Remote, item: Wanted) -> None:
    intake = Intake(item)
    remote.objects.read(item, intake.feed)
    intake.finish()


def _into(remote: Remote, cache: Folder, item: Wanted) -> None:
    with cache.incoming(item) as feed:
        remote.objects.read(item, feed)


def _patiently(remote: Remote, item: Wanted, call: Callable[[], T]) -> T:
    """``call`` with some retries; what stays in the way of an answer is an :class:`UndecidedError`."""
    for tries_left in range(remote.objects.retries, -1, -1):
        try:
            return call()
        except RetryError:
            if not tries_left:
                raise
        except TimeoutError:
            raise UndecidedError(f"remote {remote.name}: {item}: no answer in time") from None
        except SolbenchError:
            raise
        except failures() as error:
            if not tries_left:
                raise UndecidedError(f"remote {remote.name}: {item}: {_text(error)}") from None
        time.sleep(0.2 * 3 ** (remote.objects.retries - tries_left))
    raise AssertionError


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)[:200] or type(error).__name__


def _each(
    remote: Remote, work: Callable[[Wanted], T], items: Iterable[Wanted], what: str, progress: Progress
) -> Iterator[T]:
    """Results as they come; an error or an interrupt ends what runs and drops what waits."""
    with ThreadPoolExecutor(remote.jobs) as pool:
        futures: list[Future[T]] = [pool.submit(work, item) for item in items]
        try:
            for number, future in enumerate(as_completed(futures), 1):
                yield future.result()
                progress(what, number, len(futures))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            remote.objects.close()
            raise
