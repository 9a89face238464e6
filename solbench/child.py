"""Cases run in a confined process of their own, one answer each, so that a crash or a hang loses one case only.

Parent side: :func:`ask`. Child side: :func:`main`, which runs a generator ``function(request, folder)`` and writes down
what it yields; it is confined before the function is imported. What it prints is in ``folder/log``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solbench.evaluate import sandbox

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[1])
_MAX_ANSWERS = 16 << 20


def ask(
    function: str, request: Mapping[str, Any], folder: Path, *, timeout_s: float, memory_bytes: int,
    cwd: Path | None = None, torch: bool = True,
) -> tuple[list[Any], str | None]:  # fmt: skip
    """Answers of ``function`` (``module:name``) on ``request``, and how its process ended if not well: ``timeout``, or
    ``ended by SIGSEGV``, ``ended with exit code 7``.

    ``folder``: the only place where the process may write, and its working folder unless ``cwd`` is another.
    ``memory_bytes``: what it may map beside PyTorch, which it has loaded unless ``torch`` is false.
    """
    threads = len(os.sched_getaffinity(0))
    limits = {"memory_bytes": memory_bytes, "cpu_s": int(timeout_s * threads) + 60}
    asked = {"function": function, "request": request, "limits": limits, "torch": torch}
    (folder / "request.json").write_text(json.dumps(asked))
    (folder / "answers").unlink(missing_ok=True)
    code = (
        f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); from solbench.child import main; "
        f"sys.path.pop(0); main({str(folder.absolute())!r})"
    )
    fault = None
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", code],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd or folder,
            env=sandbox.environment(str(folder.absolute()), threads), start_new_session=True,
        )  # fmt: skip
    try:
        status = process.wait(timeout_s)
        if status != 0:
            fault = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit code {status}"
    except subprocess.TimeoutExpired:
        fault = "timeout"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _answers(folder / "answers"), fault


def _answers(path: Path) -> list[Any]:
    """Whole lines of a file that the process may have written anything to; what does not parse ends the list."""
    if path.is_symlink() or not path.is_file():
        return []
    with path.open("rb") as stream:
        data = stream.read(_MAX_ANSWERS)
    answers = []
    for line in data.split(b"\n")[:-1]:
        try:
            answers.append(json.loads(line))
        except (ValueError, RecursionError):
            break
    return answers


def main(folder: str) -> None:
    """Confine this process, answer ``folder/request.json``, and leave."""
    sandbox.die_with_parent()
    asked = json.loads((Path(folder) / "request.json").read_text())
    if asked["torch"]:
        import torch  # noqa: F401 (what it maps is not the case's)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limits = asked["limits"]
    sandbox.confine(folder, memory_bytes=mapped + limits["memory_bytes"], cpu_s=limits["cpu_s"])
    module, _, name = asked["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    with (Path(folder) / "answers").open("w") as stream:
        for answer in function(asked["request"], Path(folder)):
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
    sys.stdout.flush()
    os._exit(0)  # nothing that a case left behind runs on
