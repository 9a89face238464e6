"""Runs DVC: one ``dvc repro`` a workspace, under a lock of our own, and the DVC root ``local/``.

DVC's own lock gives up under load and trusts process ids, so ours is a flock that the kernel releases with the process.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from solbench.errors import InputError, SolbenchError, UndecidedError
from solbench.workspace import Workspace, write_file

LOCAL_STAGES = ("calibrate", "measure")


class PipelineError(SolbenchError):
    """A stage failed; its own output says why."""

    exit_code = 1


def parse_duration(text: str) -> float:
    """Seconds in ``300``, ``300s``, ``10m`` or ``2h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise InputError("--budget", f"{text!r} is not a duration such as 300s, 10m, 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


@contextmanager
def repro_lock(checkout: Path) -> Iterator[None]:
    """Hold ``.solbench/repro.lock``; :class:`UndecidedError` when another repro of this workspace runs."""
    path = checkout / ".solbench" / "repro.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise UndecidedError(f"{path}: {owner} is rebuilding this workspace; wait for it, or end it") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield


def dvc_environment(checkout: Path) -> dict[str, str]:
    """Environment of a DVC call: this interpreter's scripts first, no analytics, DVC's caches below ``.solbench``."""
    scripts = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": scripts + os.pathsep + os.environ.get("PATH", os.defpath),
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(checkout / ".solbench" / "dvc"),
    }


def run_dvc(root: Path, checkout: Path, *arguments: str) -> int:
    """Run DVC in ``root`` and return its exit code; its output goes to ours, and it dies with us."""
    from solbench.evaluate.sandbox import die_with_parent

    command = [sys.executable, "-m", "dvc", *arguments]
    environment = dvc_environment(checkout)
    try:
        return subprocess.run(
            command, cwd=root, env=environment, check=False, preexec_fn=die_with_parent
        ).returncode  # fmt: skip
    except FileNotFoundError as error:
        raise UndecidedError(f"cannot run DVC: {error}") from None


def repro(root: Path, *, force: bool = False) -> int:
    """Rebuild the release whose DVC root is ``root``."""
    workspace = Workspace.at(root)
    workspace.parameters()
    _require_dvc()
    with repro_lock(workspace.checkout):
        return _repro(workspace, force)


def repro_local(checkout: Path, *, force: bool, protocol: str, budget_s: float) -> int:
    """Create or update ``local/`` and rebuild the local release there."""
    published = Workspace.at(checkout)
    _require_dvc()
    with repro_lock(published.checkout):
        workspace = prepare_local(published, protocol, budget_s)
        return _repro(workspace, force)


def prepare_local(published: Workspace, protocol: str, budget_s: float) -> Workspace:
    """Write ``local/``: its own DVC root, the same stages on the same code, and the identity of this machine."""
    from solbench.device.cpu import identity

    root = published.checkout / "local"
    root.mkdir(exist_ok=True)
    if not (root / ".dvc").is_dir() and run_dvc(root, published.checkout, "init", "-q", "--no-scm") != 0:
        raise PipelineError(f"{root}: dvc init failed")
    config = "[core]\n    no_scm = true\n    analytics = false\n    check_update = false\n"
    _write_if_changed(root / ".dvc" / "config", config.encode())
    parameters = {
        **published.parameters().as_dict(),
        "release": "local",
        # Generated workloads are made for the memory of a card.
        "capacity_gib": {},
        "protocol": protocol,
        "budget_s": float(budget_s),
    }
    stages = local_stages(yaml.safe_load((published.root / "dvc.yaml").read_bytes()))
    _write_if_changed(root / "params.yaml", yaml.safe_dump(parameters, sort_keys=False).encode())
    _write_if_changed(root / "dvc.yaml", yaml.safe_dump(stages, sort_keys=False).encode())
    # What was recorded of runs elsewhere is no word about this machine.
    (root / "readiness").mkdir(exist_ok=True)
    machine = json.dumps(identity(), indent=2, sort_keys=True) + "\n"
    _write_if_changed(root / "machine.json", machine.encode())
    return Workspace.at(root)


def local_stages(published: Mapping[str, Any]) -> dict[str, Any]:
    """The stages of ``local/``: the published ones with code and problems one level up, plus calibrate and measure."""
    own = ("store", "measurements", "readiness", "release", "site", "hardware", "machine.json")

    def here(path: str) -> str:
        # Recorded code and emulated verdicts are no measurement of a machine, and no machine's own.
        shared = ("site_templates", "measurements/code", "measurements/verdicts")
        mine = path.partition("/")[0] in own and path not in shared
        return path.replace("published", "local") if mine else f"../{path}"

    stages: dict[str, Any] = {}
    for name, stage in published["stages"].items():
        deps = [here(path) for path in stage["deps"]]
        outs = [
            {here(path): flags for path, flags in out.items()} if isinstance(out, dict) else here(out)
            for out in stage["outs"]
        ]
        if name == "bounds":
            stages["calibrate"] = {
                "desc": "what this cpu can do, measured",
                "cmd": "solbench stage calibrate",
                "deps": ["machine.json", "../solbench/device"],
                "outs": ["hardware"],
            }
            deps = [dep for dep in deps if dep != "measurements"] + ["hardware"]
        if name == "timings":
            stages["measure"] = {
                "desc": "every solution and the eager baseline on this cpu",
                "cmd": "solbench stage measure",
                "deps": [
                    "machine.json", "hardware", "../solbench/evaluate", "../solbench/device", "../solbench/inputs.py",
                    "../solbench/checks.py", "store/corpus.json", "store/workloads.json", "store/bounds.json",
                ],
                "params": ["protocol", "budget_s", "max_call_s"],
                "outs": ["measurements"],
            }  # fmt: skip
        stages[name] = {**stage, "deps": deps, "outs": outs}
    return {"stages": stages}


def _repro(workspace: Workspace, force: bool) -> int:
    clear_remains(workspace.root)
    arguments = ["repro", "--force"] if force else ["repro"]
    code = run_dvc(workspace.root, workspace.checkout, *arguments)
    if code != 0:
        raise PipelineError(f"dvc repro ended with {code}; the lines above name the stage and the reason")
    return 0


def clear_remains(root: Path) -> None:
    """Remove what a killed run left in ``root``; the caller holds the lock, so no stage of ours is running.

    Temporary folders of stages, and DVC's own lock file where it cannot be read or only names processes that are no
    running DVC: DVC believes in zombies, in a process id that was given again, and gives up at half a file.
    """
    for folder in (root / "store").glob(".*-*"):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
    path = root / ".dvc" / "tmp" / "rwlock"
    try:
        held = json.loads(path.read_bytes())
        owners = [*held.get("write", {}).values(), *(one for many in held.get("read", {}).values() for one in many)]
        running = any(_runs_dvc(int(owner["pid"])) for owner in owners)
    except FileNotFoundError:
        return
    except (ValueError, TypeError, KeyError, AttributeError):
        running = False
    if not running:
        path.unlink(missing_ok=True)


def _runs_dvc(pid: int) -> bool:
    """Whether ``pid`` is a living DVC; a zombie has no command line."""
    try:
        return b"dvc" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _require_dvc() -> None:
    import importlib.util

    if importlib.util.find_spec("dvc") is None:
        raise UndecidedError("DVC is not installed; run `pip install 'solbench[release]'`")


def _write_if_changed(path: Path, data: bytes) -> None:
    if not path.is_file() or path.read_bytes() != data:
        write_file(path, data)
