"""The two file locks of a card: ``gpu-<UUID>.L1-ownership.lock`` and ``gpu-<UUID>.L2-execution.lock``.

Files of other kinds beside them are written by whoever holds L1 (``evidence.py``). Lock files are never removed: who
waits on a removed one would own a card that somebody else owns as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from solbench.errors import InputError, UndecidedError

DIRECTORY, UUID = "GPU_LOCK_DIR", "GPU_LOCK_UUID"
_INDEXED = re.compile(r"GPU_LOCK_(INDEX|INDEXES|INDICES|IDX|ID|IDS|DEVICE|DEVICES|NUMBER|ORDINAL|CARD)")
_POLL_S = 0.05


def directory(option: Path | None, environment: Mapping[str, str]) -> Path:
    """The folder of the locks: the option, else ``GPU_LOCK_DIR``. It must be there and writable."""
    _refuse_indexed(environment)
    named = str(option) if option is not None else environment.get(DIRECTORY)
    if not named:
        raise InputError(
            DIRECTORY, "no lock folder named; set it, or pass --lock-dir: one folder for all users of a card"
        )
    where = f"--lock-dir {named}" if option is not None else f"{DIRECTORY}={named}"
    folder = Path(named).absolute()
    if not folder.is_dir():
        raise InputError(where, "no such folder; make it, writable for everyone who measures")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(where, "not writable for this user")
    return folder


def uuid(option: str | None, environment: Mapping[str, str]) -> str | None:
    """The card's UUID: the option, else ``GPU_LOCK_UUID``, else None."""
    _refuse_indexed(environment)
    named = option or environment.get(UUID) or None
    if named and not re.fullmatch(r"[A-Za-z]*-?[0-9A-Fa-f]+(-[0-9A-Fa-f]+)+|[A-Za-z]+-[0-9A-Fa-f]{16}", named):
        where = f"--uuid {named}" if option else f"{UUID}={named}"
        raise InputError(where, "not a UUID; a lock belongs to a card, not to an index")
    return named


def path(folder: Path, card_uuid: str, kind: str) -> Path:
    """``gpu-<UUID>.<kind>``."""
    if not re.fullmatch(r"[A-Za-z0-9-]+", card_uuid):
        raise InputError(f"card {card_uuid!r}", "this UUID cannot name a file")
    return folder / f"gpu-{card_uuid}.{kind}"


def ownership(folder: Path, card_uuid: str) -> Path:
    return path(folder, card_uuid, "L1-ownership.lock")


def execution(folder: Path, card_uuid: str) -> Path:
    return path(folder, card_uuid, "L2-execution.lock")


def attempt(lock: Path) -> int | None:
    """Take the lock if it is free: a descriptor that holds it, or None."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InputError(str(lock), f"the lock cannot be opened: {error.strerror}") from None
        with contextlib.suppress(PermissionError):
            os.fchmod(handle, 0o666)  # whatever the umask: everyone who may write the folder may lock
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            os.close(handle)
            raise UndecidedError(f"{lock}: this file system has no locks: {error.strerror}") from None
        try:
            # Somebody may have removed the file between opening and locking it.
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)


def wait(lock: Path, timeout_s: float) -> int | None:
    """Like :func:`attempt`, trying again until ``timeout_s`` have passed."""
    deadline = time.monotonic() + timeout_s
    while (handle := attempt(lock)) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return handle


def release(handle: int) -> None:
    """Give the lock up, also where a child still has a copy of the descriptor."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def is_held(lock: Path) -> bool:
    handle = attempt(lock)
    if handle is None:
        return True
    release(handle)
    return False


def _refuse_indexed(environment: Mapping[str, str]) -> None:
    for name in environment:
        if _INDEXED.fullmatch(name):
            rule = f"a lock belongs to a card, and indexes change; unset it and name the card in {UUID}"
            raise InputError(name, rule)
