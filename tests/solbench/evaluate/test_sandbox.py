from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from solbench.evaluate import sandbox

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


def confined(folder: Path, outside: Path) -> dict[str, Any]:
    code = PROBE.replace("OUTSIDE", repr(str(outside))).replace("PARENT", str(os.getpid()))
    command = [sys.executable, "-I", "-S", "-B", sandbox.__file__, str(folder), "100", sys.executable, "-c", code]
    environment = {**os.environ, "SECRET_TOKEN": "x", "PYTHONPATH": "/nowhere"}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_confined_command(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    found = confined(inner, tmp_path / "outside")
    assert "SECRET_TOKEN" not in found["environment"] and "PYTHONPATH" not in found["environment"]
    assert found["environment"]["HOME"] == found["environment"]["TMPDIR"] == str(inner)
    assert found["no_new_privs"] == "1" and found["capabilities"] == 0
    assert found["core"] == [0, 0] and found["cpu"] == [100, 100] and found["file"] == [1 << 30, 1 << 30]
    assert found["inside"] == found["read"] == found["null"] == "done"


def test_landlock(tmp_path: Path) -> None:
    abi = sandbox._landlock_abi()
    if abi < 6:
        pytest.skip(f"Landlock ABI {abi}")
    inner = tmp_path / "inner"
    inner.mkdir()
    found = confined(inner, tmp_path / "outside")
    assert found["outside"] == found["signal"] == found["connect"] == "PermissionError"
    assert not (tmp_path / "outside").exists()


def test_isolation_says_what_it_is() -> None:
    assert sandbox.isolation()[:3] == ("rlimits", "scrubbed environment", "private temporary folder")
    assert not any("namespace" in name or "bubblewrap" in name for name in sandbox.isolation())


def test_both_sides_get_the_same_threads() -> None:
    environment = sandbox.environment("/x", 3)
    assert {environment[name] for name in sandbox.THREAD_VARIABLES} == {"3"}
