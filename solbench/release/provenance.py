"""Who built a bundle, from what, with what: a statement that names the root and travels beside it, never inside it."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from solbench import canonical

# Whose version can change an artifact, or the bytes of a page.
_TOOLS = ("solbench", "torch", "triton", "numpy", "opt_einsum", "blake3", "rfc8785", "pydantic", "jinja2", "pygments")
BUILD_TYPE = "https://solbench.dev/build/dvc-repro/v1"


def predicate(checkout: Path, root: Path) -> dict[str, Any]:
    """SLSA-shaped predicate: source revision, parameters, lock and tool versions. No time, host or path.

    ``checkout`` holds the source, ``root`` is the DVC root that was rebuilt. The revision is null outside git, and
    ``clean`` null with it.
    """
    revision, clean = _revision(checkout)
    files = {name: _digest(root / name) for name in ("dvc.yaml", "dvc.lock", "params.yaml")}
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"release": "local" if root.name == "local" else "published"},
            "internalParameters": {"source_clean": clean},
            "resolvedDependencies": [
                {"name": "source", "digest": {"gitCommit": revision}},
                *({"name": name, "digest": {"blake3": digest}} for name, digest in files.items() if digest),
            ],
        },
        "runDetails": {
            "builder": {"id": "https://solbench.dev/builder/local/v1", "version": _versions()},
        },
    }


def _revision(checkout: Path) -> tuple[str | None, bool | None]:
    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-c", f"safe.directory={checkout}", "-C", str(checkout), *arguments],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout

    revision = git("rev-parse", "HEAD")
    status = git("status", "--porcelain")
    if revision is None or status is None:
        return None, None
    return revision.strip(), status == ""


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _TOOLS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _digest(path: Path) -> str | None:
    try:
        return canonical.digest(path.read_bytes()).removeprefix("blake3:")
    except FileNotFoundError:
        return None
