"""``solbench remote check``: whether a remote has every object that a checkout needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.errors import UndecidedError
from solbench.remotes.connection import open_remote
from solbench.remotes.folder import MissingError
from solbench.remotes.plan import make_plan
from solbench.remotes.pull import cached_listing
from solbench.remotes.push import sized
from solbench.remotes.transfer import Answer, Progress, ask, fetch_listing, silent
from solbench.remotes.wanted import AlteredError, Out
from solbench.workspace import Workspace


@dataclass(frozen=True)
class Report:
    """One answer an object, listings first. ``unlisted``: files of folders whose listing could not be had."""

    remote: str
    full: bool
    answers: tuple[Answer, ...]
    unlisted: int

    @property
    def total(self) -> int:
        return len(self.answers) + self.unlisted

    def having(self, state: str) -> list[Answer]:
        return [answer for answer in self.answers if answer.state == state]

    @property
    def exit_code(self) -> int:
        """0 all there, 1 something is missing or altered, 3 could not ask."""
        if self.having("missing") or self.having("altered"):
            return 1
        return 3 if self.having("unknown") or self.unlisted else 0

    def as_dict(self) -> dict[str, Any]:
        def rows(state: str) -> list[dict[str, Any]]:
            return [{"md5": a.wanted.md5, "path": a.wanted.path, "why": a.why} for a in self.having(state)]

        return {
            "remote": self.remote,
            "checked": "size, MD5 and BLAKE3" if self.full else "existence and size",
            "objects": self.total,
            "there": len(self.having("there")),
            "missing": rows("missing"),
            "altered": rows("altered"),
            "not_asked": rows("unknown"),
            "not_listed": self.unlisted,
        }


def check(root: Path, name: str | None = None, *, full: bool = False, progress: Progress = silent) -> Report:
    """Ask for every object; with ``full`` read and hash every one. Changes nothing, here or there.

    Listings come from DVC's cache where they are right there, else from the remote.
    """
    workspace = Workspace.at(root)
    remote, cache = open_remote(workspace, name)
    remote.objects.require()
    listings: dict[str, Answer] = {}

    def listing(out: Out) -> bytes | None:
        cached = cached_listing(cache, out)
        if out.listing.md5 in listings or (cached is not None and not full):
            return cached
        try:
            data = fetch_listing(remote, out.listing)
            listings[out.md5] = Answer(out.listing, "there")
            return data
        except MissingError:
            listings[out.md5] = Answer(out.listing, "missing")
        except AlteredError as error:
            listings[out.md5] = Answer(out.listing, "altered", str(error))
        except UndecidedError as error:
            listings[out.md5] = Answer(out.listing, "unknown", str(error))
        return cached

    plan = make_plan(workspace, listing)
    rest = [one for one in plan.folders if one.md5 not in listings]
    answers = ask(remote, [*rest, *sized(cache, plan.objects)], full=full, progress=progress)
    unlisted = sum(out.files or 0 for out in plan.unknown)
    return Report(remote.name, full, (*listings.values(), *answers), unlisted)
