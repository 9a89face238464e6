"""A configured DVC remote, opened: its protocol, whether its configuration asks for verification, the local cache."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import InputError, UndecidedError, UnsupportedError
from solbench.remotes.folder import Folder
from solbench.remotes.protocols import Plugin, Web, failures
from solbench.workspace import Workspace

_JOBS = 8


@dataclass(frozen=True)
class Remote:
    """A remote by name, what its objects are read through, and how many are asked for at a time."""

    name: str
    objects: Folder | Web | Plugin
    jobs: int


def open_remote(workspace: Workspace, name: str | None) -> tuple[Remote, Folder]:
    """The remote ``name``, or the default one, and DVC's cache.

    :class:`InputError` where there is no such remote or its configuration lacks ``verify = true``,
    :class:`UnsupportedError` where the plugin for it is not installed or the kind of remote is not ours.
    """
    try:
        from dvc.config import Config
        from dvc.exceptions import DvcException
        from dvc.fs import ConfigError as FileSystemConfigError
        from dvc.fs import RemoteMissingDepsError, get_cloud_fs
    except ImportError:
        raise UndecidedError("DVC is not installed; run `pip install 'solbench[release]'`") from None
    where = str(workspace.root / ".dvc" / "config")
    owner = canonical.derived_key("unfinished objects", [socket.gethostname(), str(workspace.root)])[:16]
    try:
        config = Config(str(workspace.root / ".dvc"))
        name = _known(config, name, where)
        kind, options, base = get_cloud_fs(config, name=name)
        _require_verify(config, name, options, workspace.root)
        if options.get("worktree") or options.get("version_aware"):
            raise UnsupportedError(f"remote {name}: a cloud-versioned remote; only remotes named by MD5 are read")
        cache = _cache(config, workspace.root, owner)
        if kind.protocol == "local":
            return Remote(name, Folder(Path(base) / "files" / "md5", owner), _JOBS), cache
        files = kind(**options)
        address = files.join(base, "files", "md5")
        jobs = max(1, min(int(files.jobs), 32))
        return Remote(
            name, Web(files, address) if kind.protocol in ("http", "https") else Plugin(files, address), jobs
        ), cache
    except RemoteMissingDepsError as error:
        raise UnsupportedError(
            f"remote {name}: DVC's plugin for {error.protocol} is not installed; run `pip install dvc-{error.protocol}`"
        ) from None
    except ImportError as error:
        raise UnsupportedError(f"remote {name}: {error}; `pip install` it here") from None
    except (DvcException, FileSystemConfigError) as error:
        raise InputError(f"remote {name or 'of ' + where}", str(error)) from None
    except failures() as error:
        raise UndecidedError(f"remote {name or 'of ' + where}: {error}") from None


def _known(config: Any, name: str | None, where: str) -> str:
    remotes = sorted(config["remote"])
    name = name or config["core"].get("remote")
    if not name:
        raise InputError(where, "has no default remote; pass -r NAME, or run `dvc remote add -d NAME URL`")
    if name.lower() not in remotes:
        there = f"there are {', '.join(remotes)}" if remotes else "there is none"
        raise InputError(f"remote {name}", f"no such remote in {where}; {there}; `dvc remote add NAME URL` makes one")
    return name.lower()


def _require_verify(config: Any, name: str, options: dict[str, Any], root: Path) -> None:
    """We check whatever comes; without the setting, whoever runs plain `dvc pull` gets it unchecked."""
    if options.get("verify") is True:
        return
    level = "--local " if name in config.load_one("local")["remote"] else ""
    there = "" if root == Path.cwd() else f"--cd {root} "
    raise InputError(
        f"remote {name}", f"has no `verify = true`; run `dvc {there}remote modify {level}{name} verify true`"
    )


def _cache(config: Any, root: Path, owner: str) -> Folder:
    settings = config["cache"]
    if settings.get("local"):
        raise UnsupportedError(f"{root}/.dvc/config: cache.local is not read; set cache.dir")
    folder = settings.get("dir") or root / ".dvc" / "cache"
    return Folder(Path(folder) / "files" / "md5", owner)
