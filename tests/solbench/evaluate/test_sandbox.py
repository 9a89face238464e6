from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from solbench.errors import UndecidedError
from solbench.evaluate import namespaces, sandbox
from solbench.evaluate.session import Session

PROBE = """
import json, os, resource, socket
def tries(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(json.dumps({
    "environment": dict(os.environ),
    "no_new_privs": status["NoNewPrivs"].strip(),
    "capabilities": int(status["CapEff"], 16),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "cpu": resource.getrlimit(resource.RLIMIT_CPU),
    "file": resource.getrlimit(resource.RLIMIT_FSIZE),
    "inside": tries(lambda: open("inside", "w").close()),
    "null": tries(lambda: open("/dev/null", "w").close()),
    "outside": tries(lambda: open(OUTSIDE, "w").close()),
    "signal": tries(lambda: os.kill(PARENT, 0)),
    "connect": tries(lambda: socket.create_connection(("127.0.0.1", 1), 1)),
    "read": tries(lambda: open("/etc/passwd").close()),
}))
"""


CONFINE = """
import os, sys
sys.path.insert(0, ROOT)
from solbench.errors import UndecidedError
from solbench.evaluate import namespaces, sandbox
from solbench.evaluate.session import Session
sandbox.set_environment(sandbox.environment(FOLDER, 1))
sandbox.confine(FOLDER, memory_bytes=None, cpu_s=100, landlock=LANDLOCK)
"""
ROOT = str(Path(sandbox.__file__).parents[2])


def confined(folder: Path, outside: Path, *, landlock: bool = True) -> dict[str, Any]:
    code = CONFINE + PROBE
    names = {"ROOT": ROOT, "FOLDER": str(folder), "LANDLOCK": landlock, "OUTSIDE": str(outside), "PARENT": os.getpid()}
    for name, value in names.items():
        code = code.replace(name, repr(value))
    environment = {**os.environ, "SECRET_TOKEN": "x", "PYTHONPATH": "/nowhere"}
    command = [sys.executable, "-I", "-c", code]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_confined_process(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    found = confined(inner, tmp_path / "outside")
    assert "SECRET_TOKEN" not in found["environment"] and "PYTHONPATH" not in found["environment"]
    assert found["environment"]["HOME"] == found["environment"]["TMPDIR"] == str(inner)
    assert found["no_new_privs"] == "1" and found["capabilities"] == 0
    assert found["core"] == [0, 0] and found["cpu"] == [100, 100] and found["file"] == [1 << 30, 1 << 30]
    assert found["inside"] == found["read"] == found["null"] == "done"


def test_landlock(tmp_path: Path) -> None:
    abi = sandbox.landlock_abi()
    if abi < 6:
        pytest.skip(f"Landlock ABI {abi}")
    inner = tmp_path / "inner"
    inner.mkdir()
    found = confined(inner, tmp_path / "outside")
    assert found["outside"] == found["signal"] == found["connect"] == "PermissionError"
    assert not (tmp_path / "outside").exists()
    found = confined(inner, tmp_path / "outside", landlock=False)
    assert (found["outside"], found["signal"], found["connect"]) == ("done", "done", "ConnectionRefusedError")


NAMESPACES = tuple(f"{name} namespace" for name in ("user", "mount", "PID", "network", "IPC", "UTS"))
ALWAYS = ("rlimits", "scrubbed environment", "private temporary folder")


@pytest.mark.parametrize(
    ("missing", "abi", "names", "label"),
    [
        (None, 7, (*NAMESPACES, "landlock abi 7", *ALWAYS), "private temporary folder"),
        (None, 0, (*NAMESPACES, *ALWAYS), "; not the full sandbox: no Landlock"),
        ("bubblewrap is not here", 3, ("landlock abi 3", *ALWAYS), "; not the full sandbox: bubblewrap is not here"),
    ],
)
def test_isolation_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, missing: str | None, abi: int, names: tuple[str, ...], label: str
) -> None:
    monkeypatch.setattr(namespaces, "missing", lambda: missing)
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: abi)
    assert sandbox.isolation().names == names
    assert sandbox.isolation().label.endswith(label) and sandbox.isolation().label.startswith(f"isolation: {names[0]}")
    # Asked for, it is neither, whatever there is.
    assert sandbox.isolation(unsandboxed=True).names == ("unsandboxed", *ALWAYS)
    assert "not the full sandbox: --unsandboxed" in sandbox.isolation(unsandboxed=True).label


def test_neither_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from solbench.cli import run

    monkeypatch.setattr(namespaces, "missing", lambda: "bubblewrap is not here")
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: 0)
    with pytest.raises(UndecidedError, match=r"bubblewrap is not here.* no Landlock.*apt-get install.*--unsandboxed"):
        Session()
    candidate = tmp_path / "s.py"
    candidate.write_text("def run(x):\n    return x\n")
    problems = Path(__file__).parents[3] / "problems"
    arguments = ["evaluate", "l1n23_softmax", "--root", str(problems), "--solution", str(candidate)]
    assert run(arguments) == 3


INSIDE = """
import glob, json, os, socket
def tries(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__
print(json.dumps({
    "root": sorted(os.listdir("/")), "etc": sorted(os.listdir("/etc")), "dev": sorted(os.listdir("/dev")),
    "tmp": [path for path in os.listdir("/tmp") if not OUTSIDE.startswith("/tmp/" + path)],
    "shm": os.listdir("/dev/shm"),
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "package": os.path.exists(os.path.join(PACKAGE, "evaluate", "worker.py")),
    "beside": sorted(os.listdir(os.path.dirname(PACKAGE))),
    "outside": os.path.exists(OUTSIDE), "home": os.path.exists(os.path.join(HOME, ".secret")),
    "write": tries(lambda: open(os.path.join(PACKAGE, "x"), "w")),
    "root_write": tries(lambda: open("/x", "w")), "tmp_write": tries(lambda: open("/tmp/x", "w")),
    "capabilities": [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")],
}))
"""


@pytest.mark.skipif(namespaces.missing() is not None, reason=str(namespaces.missing()))
def test_what_there_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".secret").touch()
    monkeypatch.setenv("HOME", str(home))
    package = Path(sandbox.__file__).parents[1]
    code = INSIDE
    for name, value in {"PACKAGE": str(package), "OUTSIDE": str(tmp_path), "HOME": str(home)}.items():
        code = code.replace(name, repr(value))
    command = [*namespaces.command(), sys.executable, "-I", "-c", code]
    result = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    found = json.loads(result.stdout)
    assert "home" not in found["root"] and not {"shadow", "passwd", "ssh"} & set(found["etc"])
    assert {"null", "urandom", "shm"} <= set(found["dev"]) and not {"vda", "sda", "kmsg", "mem"} & set(found["dev"])
    # A checkout below /tmp is mounted there, and nothing else.
    shown = {path.parts[2] for path in (package, Path(sys.prefix)) if path.parts[1] == "tmp"}
    assert set(found["tmp"]) == shown and found["shm"] == []
    assert found["processes"] == [1] and found["interfaces"] == ["lo"]
    assert found["package"] and not {"problems", "measurements", ".git", "tests"} & set(found["beside"])
    assert not found["outside"] and not found["home"]
    assert (found["write"], found["root_write"], found["tmp_write"]) == ("OSError", "OSError", "done")
    assert found["capabilities"] == ["0" * 16] * 5


def test_namespaces_that_are_not_new_are_no_namespaces() -> None:
    outside = [f"{name}:[1]" for name in namespaces.KINDS.values()]
    assert namespaces._shared(outside, [f"{name}:[2]" for name in namespaces.KINDS.values()]) is None
    inside = [outside[0], *(f"{name}:[2]" for name in list(namespaces.KINDS.values())[1:])]
    assert namespaces._shared(outside, inside) == "bubblewrap made no new user namespace"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'bwrap: no permissions' >&2; exit 1", "no permissions"),
        ("exit 0", "exit code 0"),
        (None, "not installed"),
    ],
)
def test_a_bubblewrap_that_does_not_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None, reason: str
) -> None:
    if script is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = namespaces.missing.__wrapped__()
    assert found is not None and reason in found


def test_both_sides_get_the_same_threads() -> None:
    environment = sandbox.environment("/x", 3)
    assert {environment[name] for name in sandbox.THREAD_VARIABLES} == {"3"}
