"""How objects are asked for and read over HTTP, and over what DVC's plugins speak (S3, SSH, ...).

HTTP is read with DVC's own session (its credentials, proxies, certificates), but bounded: in bytes, in time, in
redirects, which lead to the same host only.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from solbench.errors import UndecidedError
from solbench.remotes.folder import MissingError
from solbench.remotes.wanted import Wanted

T = TypeVar("T")

# A server that gives less is as good as none.
_SLOWEST_BYTES_PER_S = 10_000
_REDIRECTS = 5
_CHUNK = 1 << 18
_NO_HEAD = (405, 501)
# What plugins raise that is no OSError, by the module that they bring with them.
_FOREIGN = (
    ("aiohttp", "ClientError"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("asyncssh", "Error"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("azure.core.exceptions", "AzureError"),
    ("dvc_objects.fs.errors", "AuthError"),
    ("dvc_objects.fs.errors", "ConfigError"),
)


class RetryError(UndecidedError):
    """The other side failed in a way that may pass."""


def failures() -> tuple[type[BaseException], ...]:
    """What reading from a remote may raise when the other side, or the way to it, fails."""
    found: list[type[BaseException]] = [OSError, EOFError, asyncio.TimeoutError, NotImplementedError]
    for module, name in _FOREIGN:
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)


class Web:
    """An HTTP remote: read-only. ``files``: DVC's file system object; ``base``: address of ``files/md5``."""

    writable = False
    retries = 2

    def __init__(self, files: Any, base: str) -> None:
        self._session_of = files.fs
        self._base = base.rstrip("/")
        self._patience_s = float(files.fs_args["client_kwargs"].get("read_timeout") or 60)
        self._running: set[Any] = set()
        self._closed = False

    def size(self, wanted: Wanted) -> int | None:
        """Content-Length, None where the server does not tell; errors as :meth:`read`."""

        async def length(response: Any) -> int | None:
            coded = response.headers.get("Content-Encoding", "identity") != "identity"
            return None if coded or response.content_length is None else int(response.content_length)

        try:
            return self._ask("HEAD", wanted, length, self._patience_s)
        except _NoHeadError:
            return self._ask("GET", wanted, length, self._patience_s)

    def read(self, wanted: Wanted, feed: Callable[[bytes], object]) -> None:
        """Feed all bytes; :class:`MissingError`, :class:`UndecidedError`, or one of :func:`failures`."""

        async def body(response: Any) -> None:
            coding = response.headers.get("Content-Encoding", "identity")
            if coding != "identity":
                raise UndecidedError(f"{wanted}: the server sends it as {coding[:20]!r}, which nobody asked for")
            async for piece in response.content.iter_chunked(_CHUNK):
                feed(piece)

        self._ask("GET", wanted, body, self._patience_s + wanted.limit / _SLOWEST_BYTES_PER_S)

    def require(self) -> None:
        """A server cannot be asked whether it is the right one; the first object tells."""

    def sweep(self) -> None:
        """Nothing is ever left there."""

    def close(self) -> None:
        """End every request that still runs; none starts any more."""
        self._closed = True
        for future in list(self._running):
            future.cancel()

    def _ask(self, method: str, wanted: Wanted, use: Callable[[Any], Awaitable[T]], seconds: float) -> T:
        if self._closed:
            raise UndecidedError(f"{wanted}: not asked for any more")
        future = asyncio.run_coroutine_threadsafe(self._request(method, wanted, use, seconds), self._session_of.loop)
        self._running.add(future)
        try:
            return future.result()
        finally:
            self._running.discard(future)

    async def _request(self, method: str, wanted: Wanted, use: Callable[[Any], Awaitable[T]], seconds: float) -> T:
        from aiohttp_retry import ExponentialRetry

        once = ExponentialRetry(attempts=1, retry_all_server_errors=False)
        address = f"{self._base}/{wanted.md5[:2]}/{wanted.md5[2:]}"
        session = await self._session_of.set_session()
        async with asyncio.timeout(seconds):
            for _ in range(_REDIRECTS + 1):
                async with session.request(
                    method, address, allow_redirects=False, headers={"Accept-Encoding": "identity"}, retry_options=once
                ) as response:
                    if response.status in (301, 302, 303, 307, 308):
                        address = redirected(address, response.headers.get("Location", ""), wanted)
                        continue
                    _require_ok(method, response.status, wanted)
                    return await use(response)
        raise UndecidedError(f"{wanted}: more than {_REDIRECTS} redirects")


class _NoHeadError(UndecidedError):
    """The server knows no HEAD."""


def redirected(address: str, location: str, wanted: Wanted) -> str:
    """Where a redirect leads; :class:`UndecidedError` unless to the same host and port, or from HTTP to its HTTPS."""
    target = location
    try:
        target = urljoin(address, location)
        old, new = urlsplit(address), urlsplit(target)
        same = _origin(old) == _origin(new)
        safer = old.scheme == "http" and new.scheme == "https" and old.hostname == new.hostname
    except ValueError:
        same = safer = False
    if not location or not (same or safer):
        raise UndecidedError(
            f"{wanted}: the remote redirects to {target[:100]!r}, which is not followed; if that is where the objects "
            "are, make it the remote's url"
        )
    return target


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port


def _require_ok(method: str, status: int, wanted: Wanted) -> None:
    if status == 200:
        return
    if status in (404, 410):
        raise MissingError(f"{wanted}: missing")
    if method == "HEAD" and status in _NO_HEAD:
        raise _NoHeadError(f"{wanted}: no HEAD")
    if status in (401, 403, 407):
        raise UndecidedError(f"{wanted}: may not be read (HTTP {status}); check the remote's credentials")
    if status == 429 or status >= 500:
        raise RetryError(f"{wanted}: the server answers with HTTP {status}")
    raise UndecidedError(f"{wanted}: the server answers with HTTP {status}")


class Plugin:
    """A remote behind one of DVC's file system plugins, through the interface of fsspec."""

    writable = True
    retries = 2

    def __init__(self, files: Any, base: str) -> None:
        self._files = files
        self._base = base

    def size(self, wanted: Wanted) -> int | None:
        """Bytes; :class:`MissingError`, or one of :func:`failures`."""
        try:
            size = self._files.info(self._path(wanted)).get("size")
        except FileNotFoundError:
            raise MissingError(f"{wanted}: missing") from None
        return None if size is None else int(size)

    def read(self, wanted: Wanted, feed: Callable[[bytes], object]) -> None:
        """Feed all bytes; errors as :meth:`size`."""
        try:
            with self._files.open(self._path(wanted), "rb") as file:
                while piece := file.read(_CHUNK):
                    feed(piece)
        except FileNotFoundError:
            raise MissingError(f"{wanted}: missing") from None

    def put(self, wanted: Wanted, source: Path) -> None:
        """Send the file ``source``, which was found right."""
        path = self._path(wanted)
        self._files.makedirs(self._files.parent(path), exist_ok=True)
        self._files.put_file(str(source), path)

    def require(self) -> None:
        """As for a web server."""

    def sweep(self) -> None:
        """What a kill left has the wrong size, and is sent again."""

    def close(self) -> None:
        """The plugin's own time limits end what runs."""

    def _path(self, wanted: Wanted) -> str:
        return str(self._files.join(self._base, wanted.md5[:2], wanted.md5[2:]))
