"""``solbench push``: send what the remote lacks, of what was found right here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from solbench.errors import InputError, IntegrityError, UndecidedError, UnsupportedError
from solbench.pipeline import PipelineError, clear_remains, repro_lock
from solbench.remotes.connection import Remote, open_remote
from solbench.remotes.folder import Folder
from solbench.remotes.placed import compare
from solbench.remotes.plan import Plan, make_plan
from solbench.remotes.pull import cached_listing, restore
from solbench.remotes.transfer import Progress, ask, send, silent
from solbench.remotes.wanted import Out, Wanted
from solbench.workspace import Workspace


def push(root: Path, name: str | None = None, *, full: bool = False, progress: Progress = silent) -> str:
    """Ask the remote for every object and send what it lacks, or holds with another size; then ask again.

    ``full``: read and hash what is there, and replace what was altered. :class:`IntegrityError` names what is damaged
    here; then nothing is sent.
    """
    workspace = Workspace.at(root)
    with repro_lock(workspace.checkout):
        clear_remains(workspace.root)
        remote, cache = open_remote(workspace, name)
        if not remote.objects.writable:
            raise UnsupportedError(f"remote {remote.name}: HTTP is read-only; push to the folder or bucket behind it")
        try:
            cache.sweep()
            remote.objects.sweep()
            plan = make_plan(workspace, lambda out: _own_listing(cache, out))
            _require_sound(workspace, cache, plan)
            everything = [*sized(cache, plan.objects), *plan.folders]
            lacking = _lacking(remote, everything, full, progress)
            # Listings last: what a listing names is there before it.
            for group in (plan.objects, plan.folders):
                send(remote, cache, [one for one in group if one.md5 in lacking], progress)
            left = _lacking(remote, [one for one in everything if one.md5 in lacking], full, progress)
        finally:
            cache.sweep()
            remote.objects.close()
    if left:
        raise PipelineError(
            f"remote {remote.name}: {len(left)} of {len(everything)} objects did not arrive, {min(left)} for one; "
            "push again"
        )
    return f"{len(everything)} of {len(everything)} objects are on the remote, {len(lacking)} of them sent now"


def sized(cache: Folder, wanted: tuple[Wanted, ...]) -> list[Wanted]:
    """With the size of what the cache holds, where git states none."""
    return [replace(one, size=cache.size(one)) if one.size is None and cache.holds(one) else one for one in wanted]


def _own_listing(cache: Folder, out: Out) -> bytes:
    data = cached_listing(cache, out)
    if data is None:
        raise InputError(str(out.listing), "is not in DVC's cache; run `solbench pull` or `solbench repro`, then push")
    return data


def _require_sound(workspace: Workspace, cache: Folder, plan: Plan) -> None:
    placed = compare(workspace.root, plan)
    damaged = restore(workspace, cache, plan, placed)
    if damaged:
        folders = sorted({path.rpartition("/objects/")[0] or path for path in (one.path for one in damaged)})
        raise IntegrityError(
            f"{len(damaged)} of {len(plan.objects)} objects are missing or damaged here, {damaged[0].path} for one; "
            f"nothing was sent; delete {', '.join(folders[:3])} and run `solbench repro`, or run `solbench pull`"
        )


def _lacking(remote: Remote, wanted: list[Wanted], full: bool, progress: Progress) -> set[str]:
    answers = ask(remote, wanted, full=full, progress=progress)
    unknown = [answer for answer in answers if answer.state == "unknown"]
    if unknown:
        raise UndecidedError(f"{unknown[0].why}; {len(unknown)} of {len(wanted)} objects could not be asked for")
    return {answer.wanted.md5 for answer in answers if answer.state != "there"}
