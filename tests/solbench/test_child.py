"""What a confined child sees and may do, and what is known of how it ended."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from solbench.child import ask
from solbench.evaluate import namespaces, sandbox

# Runs a file of ours before anything else of the case: its top level is the hostile code here.
FUNCTION = "solbench.corpus.oracle:answers"

LOOKS = """\
import json, os, socket, sys
seen = {"exists": {path: os.path.exists(path) for path in ASKED}}
seen["tmp"] = os.listdir("/tmp")
seen["processes"] = [int(name) for name in os.listdir("/proc") if name.isdigit()]
seen["interfaces"] = [name for _, name in socket.if_nameindex()]
seen["cwd"] = os.getcwd()
seen["written"] = []
for path in WRITTEN:
    try:
        open(path, "a").close()
        seen["written"].append(path)
    except OSError:
        pass
print(json.dumps(seen))
"""


def child(folder: Path, source: str, timeout_s: float = 60.0, **options: Any) -> tuple[list[Any], str | None, str]:
    folder.mkdir()
    (folder / "oracle.py").write_text(source)
    answers, fault = ask(FUNCTION, {"cases": 0}, folder, timeout_s=timeout_s, memory_bytes=1 << 30, **options)
    return answers, fault, (folder / "log").read_text()


needs_namespaces = pytest.mark.skipif(namespaces.missing() is not None, reason=str(namespaces.missing()))


@needs_namespaces
def test_it_sees_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    for name in ("given/file", "work/file", "hidden/file"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "given")
    folder = tmp_path / "folder"
    places = [str(tmp_path / name) for name in ("link/file", "given/file", "work/file", "hidden/file", "folder")]
    asked = [*places, "/etc/passwd", os.path.expanduser("~/.profile"), str(Path(__file__))]
    written = [str(tmp_path / name) for name in ("given/new", "work/new", "new", "folder/new")]
    source = LOOKS.replace("ASKED", repr(asked)).replace("WRITTEN", repr(written))
    _, fault, said = child(folder, source, reads=[tmp_path / "link"], cwd=tmp_path / "work")
    assert fault is None, said
    seen = json.loads(said)
    visible = {path for path, there in seen["exists"].items() if there}
    assert visible == {str(tmp_path / name) for name in ("link/file", "given/file", "work/file", "folder")}
    assert seen["cwd"] == str(tmp_path / "work")
    assert seen["written"] == [str(folder / "new")] and (folder / "new").is_file()
    assert not [path for path in written[:3] if os.path.exists(path)]
    # Its own, and bubblewrap's, which waits for it.
    assert len(seen["processes"]) == 2 and seen["interfaces"] == ["lo"]
    # Of /tmp only what was given, and the package, should the checkout be there.
    shown = (tmp_path, Path(sandbox.__file__), Path(sys.prefix))
    assert set(seen["tmp"]) == {path.relative_to("/tmp").parts[0] for path in shown if path.is_relative_to("/tmp")}


@needs_namespaces
def test_a_home_is_not_shown_for_a_file_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").touch()
    (tmp_path / "module.py").touch()
    asked = [str(tmp_path / name) for name in (".netrc", "module.py")]
    source = LOOKS.replace("ASKED", repr(asked)).replace("WRITTEN", "[]")
    _, fault, said = child(tmp_path / "folder", source, reads=[tmp_path / "module.py", tmp_path], cwd=tmp_path)
    assert fault is None, said
    seen = json.loads(said)
    assert seen["exists"] == dict(zip(asked, (False, True))) and seen["cwd"] == str(tmp_path)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "ended by SIGKILL"),
        pytest.param("import os\nos.abort()\n", "ended by SIGABRT", marks=pytest.mark.slow),
        pytest.param("import ctypes\nctypes.string_at(8)\n", "ended by SIGSEGV", marks=pytest.mark.slow),
        pytest.param("import os\nos._exit(7)\n", "ended with exit code 7", marks=pytest.mark.slow),
    ],
)
def test_how_it_ended(tmp_path: Path, source: str, expected: str) -> None:
    assert child(tmp_path / "folder", source)[:2] == ([], expected)


@pytest.mark.slow
def test_nothing_runs_on(tmp_path: Path) -> None:
    """A child that hangs, with a process of its own that has cut its ties, where namespaces end that too."""
    mark = f"mark_{os.getpid()}"
    source = f"""\
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600); {mark} = 1"], start_new_session=True)
print("started", flush=True)
time.sleep(600)
"""
    answers, fault, said = child(tmp_path / "folder", source, timeout_s=12.0)
    assert (answers, fault, said) == ([], "timeout", "started\n")
    if namespaces.missing() is None:
        deadline = time.monotonic() + 10
        while running(mark):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def running(mark: str) -> bool:
    """Whether a process has ``mark`` on its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def test_without_bubblewrap_it_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "missing", lambda: "bubblewrap is not installed")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = (
        f"import os, sys\nprint(os.path.exists('/proc/{os.getpid()}'), sys.flags.safe_path, sys.flags.no_user_site, "
        "'PYTHONPATH' in os.environ)\n"
    )
    answers, fault, said = child(tmp_path / "folder", source)
    assert (answers, fault, said.split()) == ([], None, ["True", "True", "1", "False"])


def test_sets_of_texts_are_in_the_same_order_each_time(tmp_path: Path) -> None:
    source = "import sys\nprint([hash(text) for text in 'abc'], '' in sys.path)\n"
    said = {child(tmp_path / str(number), source)[2] for number in range(2)}
    assert len(said) == 1 and said.pop().endswith("] False\n")


def test_one_thread_alone_is_not_bound_to_a_core(tmp_path: Path) -> None:
    source = "import os\nprint(os.environ['OMP_NUM_THREADS'], os.environ.get('OMP_PROC_BIND'))\n"
    said = [child(tmp_path / str(threads), source, threads=threads)[2].split() for threads in (1, 2)]
    assert said == [["1", "None"], ["2", "true"]]


def test_another_thread_can_end_it(tmp_path: Path) -> None:
    answers, fault, _ = child(
        tmp_path / "folder", "import time\ntime.sleep(600)\n", timeout_s=300.0, on_start=lambda process: process.kill()
    )
    assert (answers, fault) == ([], "ended by SIGKILL")
