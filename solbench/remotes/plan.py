"""All that a checkout needs: outs, their checked listings, and the objects that they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from solbench.errors import IntegrityError
from solbench.remotes.wanted import Out, Wanted, distinct, folder_objects, locked_outs, parse_listing
from solbench.workspace import Workspace


@dataclass(frozen=True)
class Plan:
    """``files``: what every file of every out must be. ``listings``: bytes of each folder's listing, by its name.

    ``unknown``: folders whose listing could not be had; what they hold is not in ``files``.
    """

    outs: tuple[Out, ...]
    files: tuple[Wanted, ...]
    listings: dict[str, bytes]
    unknown: tuple[Out, ...] = ()

    @property
    def objects(self) -> tuple[Wanted, ...]:
        """What the outs hold, each object once, in order of MD5; without the listings."""
        return tuple(one for _, one in sorted(distinct(self.files).items()))

    @property
    def folders(self) -> tuple[Wanted, ...]:
        """The listings, each once, with their size where it is known."""
        found = {out.md5: out.listing for out in self.outs if out.is_folder}
        sizes = {md5: len(data) for md5, data in self.listings.items()}
        return tuple(replace(listing, size=sizes.get(md5)) for md5, listing in sorted(found.items()))


def make_plan(workspace: Workspace, listing: Callable[[Out], bytes | None]) -> Plan:
    """Read ``dvc.lock`` and the indexes; ``listing`` gets the bytes of a folder's listing, None where it cannot.

    :class:`IntegrityError` where a listing is not what ``dvc.lock`` and the indexes say, or there is nothing to want.
    """
    outs = locked_outs(workspace.root)
    if not outs:
        raise IntegrityError(f"{workspace.root / 'dvc.lock'}: no out, no object; nothing was checked")
    files: list[Wanted] = []
    listings: dict[str, bytes] = {}
    unknown: list[Out] = []
    for out in outs:
        if not out.is_folder:
            files.append(Wanted(out.md5, out.path, out.size if out.size is not None else out.listing.limit, out.size))
            continue
        data = listing(out)
        if data is None:
            unknown.append(out)
            continue
        listings[out.md5] = data
        path = PurePosixPath(out.path)
        index = workspace.store.index(path.name) if path.parent == PurePosixPath("store") else None
        files.extend(folder_objects(out, parse_listing(data, out), index))
    plan = Plan(outs, tuple(files), listings, tuple(unknown))
    distinct(plan.files)
    return plan
