"""A local clone of a corpus's source: fetched at the pinned revision, and asked which revision it stands at."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from solbench.corpus.manifest import Corpus, unbound
from solbench.errors import InputError, UndecidedError
from solbench.workspace import new_folder

FETCH_LIMIT_S = 900.0
# Whatever a person's configuration says: no hooks, no prompts, the bytes as they were committed.
_SETTINGS = ("core.hooksPath=/dev/null", "core.autocrlf=false", "advice.detachedHead=false", "safe.directory=*")


def fetch_source(corpus: Corpus, folder: Path, repository: str | None = None) -> str:
    """Clone the corpus's source at its pinned revision into ``folder``, which must not exist; the revision.

    ``repository``: another address of the same source. Nothing is left behind where it fails: :class:`InputError` for
    an existing folder, :class:`UndecidedError` where git or the network does not do it, or other files came.
    """
    source = corpus.manifest.source
    address = repository or source.repository
    with new_folder(folder) as temporary:
        _git("init", "--quiet", "--template=", str(temporary))
        try:
            _git("-C", str(temporary), "fetch", "--quiet", "--depth=1", "--", address, source.revision)
        except UndecidedError as error:
            raise UndecidedError(
                f"{address}: revision {source.revision} cannot be fetched ({error}); if this machine is offline, "
                "clone it elsewhere, copy the folder here and pass it as --source"
            ) from None
        _git("-C", str(temporary), "checkout", "--quiet", "--detach", source.revision)
        found = binding(corpus, temporary)
        if found:
            raise UndecidedError(f"{address}: not the pinned source: {found[0]} ({len(found)} differences)")
    return source.revision


def binding(corpus: Corpus, clone: Path) -> list[str]:
    """What keeps ``clone`` from being the source that the manifest pins, one line each; none: it is bound.

    The revision that is checked out, and each of the manifest's artifacts by SHA-256.
    """
    revision = head(clone)
    pinned = corpus.manifest.source.revision
    found = [] if revision == pinned else [f"HEAD: is {revision}, the manifest pins {pinned}"]
    return found + unbound(corpus.manifest, clone)


def head(clone: Path) -> str:
    """The revision that ``clone`` has checked out; :class:`InputError` where it is no clone."""
    if not (clone / ".git").exists():
        raise InputError(str(clone), "is no git clone; `solbench corpus fetch-source` makes one")
    try:
        return _git("--git-dir", str(clone / ".git"), "rev-parse", "--verify", "HEAD^{commit}").strip()
    except UndecidedError as error:
        raise InputError(str(clone), f"has no revision checked out ({error})") from None


def _git(*arguments: str) -> str:
    """Output of git; :class:`UndecidedError` with its last line where it fails."""
    if shutil.which("git") is None:
        raise UndecidedError("git is not installed")
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    # A hook that calls us sets GIT_DIR and the like, which would lead git elsewhere.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *settings, *arguments], capture_output=True, text=True, errors="replace", env=environment,
            stdin=subprocess.DEVNULL, timeout=FETCH_LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UndecidedError(f"git did nothing for {FETCH_LIMIT_S:g} s") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "no message")
        raise UndecidedError(f"git: {said.removeprefix('fatal: ').strip()}")
    return done.stdout
