"""What lies in the workspace where the outs belong, compared with what should; no link is followed, nothing changed."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from solbench.errors import UndecidedError
from solbench.release import inventory
from solbench.remotes.plan import Plan
from solbench.remotes.wanted import AlteredError, Intake, Wanted

# As DVC names what it has not finished copying.
_UNFINISHED = re.compile(r"\.[A-Za-z0-9_-]{22}\.tmp\Z")


@dataclass(frozen=True)
class Placed:
    """Files of the plan that are ``right``, ``damaged`` (other bytes) or ``missing``; and what else is there.

    ``extra``, ``links`` (anything that is neither file nor folder) and ``unfinished`` are paths below the DVC root.
    """

    right: tuple[Wanted, ...]
    damaged: tuple[Wanted, ...]
    missing: tuple[Wanted, ...]
    extra: tuple[str, ...]
    links: tuple[str, ...]
    unfinished: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Everything is right and nothing else is there."""
        return not (self.damaged or self.missing or self.extra or self.links or self.unfinished)


def compare(root: Path, plan: Plan) -> Placed:
    """Read every file below every out of ``plan``, and see what else lies below ``store/``."""
    wanted = {one.path: one for one in plan.files}
    right: list[Wanted] = []
    damaged: list[Wanted] = []
    extra: list[str] = []
    links: list[str] = []
    unfinished: list[str] = []
    for path, mode in _below(root, [out.path for out in plan.outs]):
        name = path.rpartition("/")[2]
        if not stat.S_ISREG(mode):
            links.append(path)
        elif path in wanted:
            (right if _is(root, wanted[path]) else damaged).append(wanted[path])
        else:
            (unfinished if _UNFINISHED.match(name) else extra).append(path)
    extra += _strays(root, plan)
    seen = {one.path for one in (*right, *damaged)}
    missing = [one for path, one in wanted.items() if path not in seen]
    return Placed(tuple(right), tuple(damaged), tuple(missing), tuple(extra), tuple(links), tuple(unfinished))


def _below(root: Path, outs: list[str]) -> Iterator[tuple[str, int]]:
    """(Path, mode) of everything at and below ``outs`` that is no folder; a folder of a path that is a link is one."""
    for out in outs:
        parts = PurePosixPath(out).parts
        for number in range(1, len(parts) + 1):
            path = "/".join(parts[:number])
            try:
                mode = (root / path).lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                break
            if not stat.S_ISDIR(mode):
                yield path, mode
                break
        else:
            yield from _walk(root, out)


def _walk(root: Path, folder: str) -> Iterator[tuple[str, int]]:
    stack = [folder]
    while stack:
        here = stack.pop()
        try:
            entries = inventory.scan(root, here)
        except OSError as error:
            raise UndecidedError(f"{root / here}: cannot be listed: {error.strerror}") from None
        for entry in entries:
            path = f"{here}/{entry.name}"
            if entry.folder:
                stack.append(path)
            else:
                yield path, entry.mode


def _is(root: Path, wanted: Wanted) -> bool:
    intake = Intake(wanted, md5=False)
    try:
        for piece in inventory.chunks(root, wanted.path):
            intake.feed(piece)
        intake.finish()
        return True
    except AlteredError:
        return False
    except OSError as error:
        raise UndecidedError(f"{root / wanted.path}: cannot be read: {error.strerror}") from None


def _strays(root: Path, plan: Plan) -> list[str]:
    """What lies below ``store/`` and is neither an index nor in the folder of a stage that the plan knows."""
    store = root / "store"
    if not store.is_dir() or store.is_symlink():
        return []
    known = {out.path.removeprefix("store/") for out in plan.outs if out.path.startswith("store/")}
    found = inventory.items(store)
    return [f"store/{item.path}" for item in found if item.what != "index" and item.stage not in known]
