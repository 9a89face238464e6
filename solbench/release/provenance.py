"""Who built a bundle, from what, with what, and what was measured where: a statement that names the root and travels
beside it, never inside it.

The shape is SLSA provenance v1 (https://slsa.dev/spec/v1.1/provenance) in an in-toto statement.
``resolvedDependencies``: the source, and the files that say what is built. ``byproducts``: the measurement sets, the
one thing that was made on some device and that nobody can reproduce from the source; they are no
``internalParameters``, which are plain inputs, without digests. What is not known is left out.
"""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.model.trace import SetHeader
from solbench.score.records import origin_of
from solbench.store import Store, without_kind

# Whose version can change an artifact, or the bytes of a page.
_TOOLS = ("solbench", "torch", "triton", "numpy", "opt_einsum", "blake3", "rfc8785", "pydantic", "jinja2", "pygments")
BUILD_TYPE = "https://solbench.dev/build/dvc-repro/v1"


def predicate(checkout: Path, root: Path, store: Store) -> dict[str, Any]:
    """What stands in the statement about a release. No time, host or path.

    ``checkout`` holds the source, ``root`` is the DVC root that was rebuilt, ``store`` what it built. Outside git there
    is no source among the dependencies, and no ``source_clean``.
    """
    commit, clean = revision(checkout)
    files = {name: _digest(root / name) for name in ("dvc.yaml", "dvc.lock", "params.yaml")}
    source = [{"name": "source", "digest": {"gitCommit": commit}}] if commit is not None else []
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"release": "local" if root.name == "local" else "published"},
            "internalParameters": {"source_clean": clean} if clean is not None else {},
            "resolvedDependencies": [
                *source,
                *({"name": name, "digest": {"blake3": digest}} for name, digest in files.items() if digest),
            ],
        },
        "runDetails": {
            "builder": {"id": "https://solbench.dev/builder/local/v1", "version": _versions()},
            "byproducts": measured(store),
        },
    }


def measured(store: Store) -> list[dict[str, Any]]:
    """A descriptor of the header of every measurement set of the release, by target and name.

    Annotations: whose word it is, and what the header says of target, device, protocol, harness and environment.
    """
    found = []
    for name, descriptor, artifact in store.items("timings", "measurement-set"):
        header = SetHeader.load(without_kind(artifact), f"timings: {name}")
        set_name = name.removesuffix("/header")
        annotations = {
            "target": header.target,
            "origin": origin_of(set_name, header.target),
            "device": header.device.get("name") or header.device.get("model"),
            "protocol": header.protocol.as_dict(),
            "harness": header.harness,
            "environment": header.environment,
        }
        described = {
            "name": set_name,
            "digest": {"blake3": descriptor.digest.removeprefix("blake3:")},
            "mediaType": "application/json",
            "annotations": {key: value for key, value in annotations.items() if value is not None},
        }
        found.append((header.target, set_name, described))
    return [described for _, _, described in sorted(found, key=lambda one: one[:2])]


def revision(checkout: Path) -> tuple[str | None, bool | None]:
    """Commit of the checkout, and whether nothing differs from it; null outside git."""

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

    commit = git("rev-parse", "HEAD")
    status = git("status", "--porcelain")
    if commit is None or status is None:
        return None, None
    return commit.strip(), status == ""


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
