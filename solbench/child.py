"""Cases run in a confined process of their own, one answer each, so that a crash or a hang loses one case only.

Parent side: :func:`ask`. Child side: :func:`main`, which runs a generator ``function(request, folder)`` and writes down
what it yields; it is confined before the function is imported, and where bubblewrap can make them it is in namespaces
in which there is only what it was given. What it prints is in ``folder/log``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from solbench.evaluate import namespaces, sandbox

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[1])
_MAX_ANSWERS = 16 << 20
# A working folder that is one of these, a home, or above one, is there and empty.
_NEVER_WHOLE = ("/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var")
_SIGNALLED = 128  # what bubblewrap adds to the number of the signal that ended what it ran


def ask(
    function: str, request: Mapping[str, Any], folder: Path, *, timeout_s: float, memory_bytes: int,
    reads: Iterable[Path] = (), cwd: Path | None = None, torch: bool = True,
    threads: int | None = None, on_start: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
) -> tuple[list[Any], str | None]:  # fmt: skip
    """Answers of ``function`` (``module:name``) on ``request``, and how its process ended if not well: ``timeout``, or
    ``ended by SIGSEGV``, ``ended with exit code 7``.

    ``folder``: the only place where the process may write, and its working folder unless ``cwd`` is another.
    ``reads``: files and folders that it is shown beside what Python needs; ``cwd`` is one of them. A folder that is a
    home, or above one, is not.
    ``memory_bytes``: what it may map beside PyTorch, which it has loaded unless ``torch`` is false.
    ``threads``: of its computations, one a core by default. One alone is not bound to a core, which would be the same
    one for every such process.
    ``on_start`` hears of the process, so that another thread can end it; all that it started ends with it.
    """
    threads = threads or len(os.sched_getaffinity(0))
    environment = sandbox.environment(str(folder.absolute()), threads)
    if threads == 1:
        del environment["OMP_PROC_BIND"]
    limits = {"memory_bytes": memory_bytes, "cpu_s": int(timeout_s * threads) + 60}
    asked = {"function": function, "request": request, "limits": limits, "torch": torch}
    (folder / "request.json").write_text(json.dumps(asked))
    (folder / "answers").unlink(missing_ok=True)
    code = (
        f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); import solar; "
        f"from solbench.child import main; sys.path.pop(0); main({str(folder.absolute())!r})"
    )
    fault = None
    prefix = [] if namespaces.missing() else _namespaces(folder, [*reads, *([cwd] if cwd else [])], cwd or folder)
    # As isolated as with -I, which passes over PYTHONHASHSEED: sets of texts are in the same order each time.
    isolated = [sys.executable, "-P", "-s", "-B"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*prefix, *isolated, "-c", code],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd or folder,
            env=environment, start_new_session=True,
        )  # fmt: skip
    try:
        on_start(process)
        status = process.wait(timeout_s)
        if prefix and status > _SIGNALLED:
            status = _SIGNALLED - status
        if status != 0:
            fault = f"ended with exit code {status}" if status > 0 else f"ended by {_name(-status)}"
    except subprocess.TimeoutExpired:
        fault = "timeout"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _answers(folder / "answers"), fault


def _namespaces(folder: Path, reads: Iterable[Path], cwd: Path) -> list[str]:
    """Start of the command line: ``folder`` to write to, ``reads`` under the names given and under their own."""
    shown = [Path(_PACKAGE_ROOT, "solar")]
    for path in reads:
        shown += [place for place in (path.absolute(), path.resolve()) if not _too_much(place)]
    return namespaces.command(reads=dict.fromkeys(shown), writes=[folder.absolute()], cwd=cwd.absolute(), first=False)


def _too_much(path: Path) -> bool:
    """Whether more than somebody's work is below ``path``: a home, what holds one, or a folder of the system's."""
    home = os.path.expanduser("~")
    whole = [Path(place) for place in (*_NEVER_WHOLE, *([os.path.realpath(home)] if os.path.isabs(home) else []))]
    return any(path.resolve() in (place, *place.parents) for place in whole)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


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
