"""``solbench pull``: fetch what is missing, check everything, and let DVC check out what was found right."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from solbench.errors import InputError, IntegrityError, UndecidedError
from solbench.pipeline import PipelineError, clear_remains, repro_lock, run_dvc
from solbench.remotes.connection import Remote, open_remote
from solbench.remotes.folder import Folder, MissingError
from solbench.remotes.placed import Placed, compare
from solbench.remotes.plan import Plan, make_plan
from solbench.remotes.transfer import Progress, fetch, fetch_listing, silent
from solbench.remotes.wanted import AlteredError, Out, Wanted
from solbench.workspace import Workspace, writing

_SHOWN = 5


def pull(root: Path, name: str | None = None, progress: Progress = silent) -> str:
    """Fetch every out of ``dvc.lock``; afterwards every file of every out was read and found right.

    :class:`IntegrityError` for what is missing, altered or does not belong here, :class:`UndecidedError` for a remote
    that cannot be asked. Whatever ends it, the next pull goes on with what has come.
    """
    workspace = Workspace.at(root)
    with repro_lock(workspace.checkout):
        clear_remains(workspace.root)
        remote, cache = open_remote(workspace, name)
        cache.sweep()
        try:
            plan = make_plan(workspace, lambda out: cached_listing(cache, out) or _fetched_listing(remote, out))
            before = compare(workspace.root, plan)
            if before.links:
                raise InputError(
                    f"{workspace.root}: {_some(before.links)}",
                    "neither a file nor a folder; remove it (DVC's cache.type must be reflink or copy), and pull again",
                )
            lacking = restore(workspace, cache, plan, before)
            if lacking:
                remote.objects.require()
                fetch(remote, cache, lacking, progress)
        except (MissingError, AlteredError) as error:
            raise IntegrityError(
                f"remote {remote.name}: {error}; nothing was checked out; `solbench remote check --full` names all "
                "faults, its publisher's `solbench push --full` mends them"
            ) from None
        finally:
            cache.sweep()
        if not before.exact:
            _check_out(workspace, before)
        placed = compare(workspace.root, plan)
    _require_exact(workspace.root, placed)
    total = len(plan.objects) + len(plan.folders)
    size = sum(one.size or 0 for one in plan.files if one.digest is not None)
    return (
        f"{total} of {total} objects, {len(lacking)} of them fetched now; {len(placed.right)} files in "
        f"{len(plan.outs)} outs, {size} bytes below store/, every hash as git states"
    )


def cached_listing(cache: Folder, out: Out) -> bytes | None:
    """The bytes of a listing in the cache, None where it is not there or altered."""
    if not cache.holds(out.listing):
        return None
    pieces: list[bytes] = []
    cache.read(out.listing, pieces.append)
    return b"".join(pieces)


def restore(workspace: Workspace, cache: Folder, plan: Plan, placed: Placed) -> list[Wanted]:
    """Fill the cache from listings that were checked and files that are right in the workspace.

    What lies in the cache under a name that its bytes do not have is removed. Returns what is still lacking.
    """
    for listing in plan.folders:
        if listing.md5 in plan.listings and not cache.sound(listing):
            with cache.incoming(listing) as feed:
                feed(plan.listings[listing.md5])
    here = {one.md5: one.path for one in placed.right}
    lacking = []
    for one in plan.objects:
        if cache.sound(one):
            continue
        if one.md5 not in here:
            lacking.append(one)
            continue
        try:
            cache.put(one, workspace.root / here[one.md5])
        except OSError as error:
            raise UndecidedError(f"{here[one.md5]}: cannot be read: {error.strerror}") from None
    return lacking


def _fetched_listing(remote: Remote, out: Out) -> bytes:
    remote.objects.require()
    return fetch_listing(remote, out.listing)


def _check_out(workspace: Workspace, before: Placed) -> None:
    """Let DVC check out from the cache, with nothing in its mind: what it remembers may come from a tampered remote."""
    # An object's name is its hash, so one that is damaged holds nobody's work.
    stale = [one.path for one in before.damaged if one.digest is not None]
    for path in (*stale, *before.unfinished):
        with writing(str(workspace.root / path)):
            (workspace.root / path).unlink()
    memory = workspace.checkout / ".solbench" / "dvc"
    if memory.exists():
        with writing(str(memory)):
            shutil.rmtree(memory)
    if run_dvc(workspace.root, workspace.checkout, "checkout") != 0:
        raise PipelineError(
            "dvc checkout failed; the lines above say what. Files that it will not overwrite were not made by a "
            "stage: move them away; then pull again"
        )


def _require_exact(root: Path, placed: Placed) -> None:
    """After a checkout: :class:`IntegrityError` names what is not right below the outs and below ``store/``."""
    wrong = [
        (f"{len(placed.damaged)} files have other bytes than git states", [one.path for one in placed.damaged]),
        (f"{len(placed.missing)} files are missing", [one.path for one in placed.missing]),
        (f"{len(placed.links)} are neither file nor folder", list(placed.links)),
        (f"{len(placed.extra)} do not belong there", [*placed.extra, *placed.unfinished]),
    ]
    said = [f"{what}: {_some(paths)}" for what, paths in wrong if paths]
    if said:
        raise IntegrityError(f"{root}: {'; '.join(said)}; move them away and pull again")


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
