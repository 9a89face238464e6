"""What an owner of a card leaves beside its lock: evidence while it owns the card, a receipt once all is restored.

Both are JSON. Evidence that outlives its owner's lock means that the card may not be as it was found: it blocks the
next owner until ``solbench device recover``. Only the holder of L1 writes, so the temporary file has one fixed name and
a kill leaves at most that one, which the next owner overwrites.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from solbench.device import locks
from solbench.errors import UndecidedError

OWNED = "owned"


@dataclass(frozen=True)
class Owner:
    """A process, told apart from every other one: ``start`` in clock ticks after boot ``boot``."""

    pid: int
    start: int
    boot: str
    command: str


@dataclass(frozen=True)
class Evidence:
    """Who owns a card, and what it found and set there. ``state``: owned, or why it could not be given back.

    ``level_set`` is None where the level was left alone; then ``level_found`` is only a note.
    """

    uuid: str
    token: str
    owner: Owner
    level_found: str | None
    level_set: str | None
    state: str = OWNED


def this_process() -> Owner:
    with open("/proc/self/stat", "rb") as file:
        start = int(file.read().rpartition(b")")[2].split()[19])
    command = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Owner(os.getpid(), start, boot, command[:200])


def evidence_path(folder: Path, uuid: str) -> Path:
    return locks.path(folder, uuid, "recovery.json")


def receipt_path(folder: Path, uuid: str) -> Path:
    return locks.path(folder, uuid, "receipt.json")


def read(folder: Path, uuid: str) -> Evidence | None:
    """Evidence of an owner; None without any. :class:`UndecidedError` when it cannot be read."""
    path = evidence_path(folder, uuid)
    try:
        value = json.loads(path.read_bytes())
        return Evidence(**{**value, "owner": Owner(**value["owner"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UndecidedError(
            f"{path}: unreadable ({error}); put the card's performance level right by hand, then remove this file"
        ) from None


def write(folder: Path, evidence: Evidence) -> None:
    _write(evidence_path(folder, evidence.uuid), asdict(evidence))


def write_receipt(folder: Path, uuid: str, value: Mapping[str, Any]) -> None:
    _write(receipt_path(folder, uuid), value)


def remove(folder: Path, uuid: str) -> None:
    evidence_path(folder, uuid).unlink()
    _sync(folder)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
