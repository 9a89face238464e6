"""References that attack whoever replays them: nothing gets out, nothing stays, and nobody else's answer changes.

Each computes ``x * 2``, as its graph says, except where what it must not do has worked: then another graph gives it
away.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import replayed_release
from replayed_release import DOUBLE, Made
from test_verify_replay import level, needs_sandbox

from solbench.release.replay import Request
from solbench.release.verify import verify

pytestmark = [needs_sandbox, pytest.mark.slow]

# A process of its own that has cut its ties, with the test's mark on its command line.
DAEMON = """\
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600); MARK = 1"], start_new_session=True)
"""
WRITES = """\
import os, tempfile
def run(x):
    for place in (".", os.path.expanduser("~"), tempfile.gettempdir(), "/tmp", "/dev/shm", "/var/tmp", HERE):
        for name in ("MARK", "answers", "log", "request.json"):
            try:
                with open(os.path.join(place, name), "w"):
                    return x * 3
            except OSError:
                pass
    return x * 2
"""
READS = """\
import os
def run(x):
    for path in ("/etc/passwd", "/etc/shadow", HERE, os.path.join(HERE, "store.json"), "/proc/PARENT/environ"):
        if os.path.exists(path):
            return x * 3
    return x * 2
"""
CONNECTS = """\
import socket
def run(x):
    for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
        try:
            with socket.socket(family, kind) as one:
                one.settimeout(1)
                one.connect(("127.0.0.1", PORT))
                one.send(b"MARK")
                if kind == socket.SOCK_STREAM:
                    return x * 3
        except OSError:
            pass
    return x * 2
"""
KILLS = """\
import os, signal
for pid in (os.getppid(), 1, PARENT, -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
def run(x):
    return x * 2
"""
HOLDS = {
    "daemon": DAEMON + "def run(x):\n    return x * 2\n",
    "writes": WRITES,
    "reads": READS,
    "connects": CONNECTS,
    "prints": 'print(\'{"workload": "w", "graph": null}\' * 10000)\n' + DOUBLE,
}
FAILS = {
    "exits": "import os\ndef run(x):\n    os._exit(0)\n",
    "leaves": "def run(x):\n    raise SystemExit(0)\n",
    "raises": "raise RuntimeError('\\x1b[2J')\n" + DOUBLE,
    "eats": "def run(x):\n    return x * len(bytearray(1 << 40))\n",
    "says": "import sys\nsys.stdout.write('{}\\n')\ndef run(x):\n    return x * 3\n",
}
HANGS = DAEMON + "def run(x):\n    while True: pass\n"


def running(mark: str) -> bool:
    """Whether a process has ``mark`` on its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    name = f"mark_{os.getpid()}_{abs(hash(tmp_path)) % 10**6}"
    yield name
    deadline = time.monotonic() + 10
    while running(name):
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.05)
    places = (Path.cwd(), Path.home(), Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), tmp_path)
    assert not [place for place in places if (place / name).exists()]


def published(folder: Path, sources: dict[str, str], mark: str, port: int = 9) -> Path:
    words = {"MARK": mark, "HERE": repr(str(folder)), "PARENT": str(os.getpid()), "PORT": str(port)}
    problems = {}
    for name, text in sources.items():
        for word, value in words.items():
            text = text.replace(word, value)
        problems[f"DEMO/unit/{name}"] = Made(DOUBLE, published=text)
    return replayed_release.build(folder, problems)


def test_what_a_reference_must_not_do_fails(tmp_path: Path, mark: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        path = published(tmp_path, HOLDS, mark, server.getsockname()[1])
        result = verify(path, replay=Request())
        with pytest.raises(BlockingIOError):
            server.accept()
    n = len(HOLDS)
    assert result.errors == ()
    assert level(result) == (
        "verified", f"{n} of {n} graphs, {n} of {n} IRs, {n} of {n} attestations of {n} problems made again",
    )  # fmt: skip


def test_the_same_acts_give_themselves_away_where_they_work(tmp_path: Path, mark: str) -> None:
    """Run here, unconfined, what must not work does: the test above could fail."""
    import torch

    for name in ("writes", "reads", "connects"):
        text = HOLDS[name].replace("MARK", f"{mark}_outside").replace("HERE", repr(str(tmp_path)))
        with socket.create_server(("127.0.0.1", 0)) as server:
            text = text.replace("PORT", str(server.getsockname()[1])).replace("PARENT", str(os.getpid()))
            namespace: dict[str, object] = {}
            # Not the folder that the tests are run in, nor a home.
            text = text.replace('".", os.path.expanduser("~"), tempfile.gettempdir(), ', "")
            exec(compile(text, name, "exec"), namespace)  # noqa: S102
            found = namespace["run"](torch.ones(1))  # type: ignore[operator]
        assert found.item() == 3, name
    Path("/tmp", f"{mark}_outside").unlink()


def test_what_does_not_answer_is_left_open_and_the_others_are_not(tmp_path: Path, mark: str) -> None:
    path = published(tmp_path, {**FAILS, "hangs": HANGS, "good": DOUBLE}, mark)
    result = verify(path, replay=Request(timeout_s=45))
    found = {
        error.path.rpartition("/")[2] if error.path.startswith("corpus") else error.path: error
        for error in result.errors
    }
    assert {name: error.code for name, error in found.items()} == {
        **dict.fromkeys(("exits", "leaves", "raises", "eats", "hangs"), "cannot-replay"),
        **dict.fromkeys(("graphs: DEMO/unit/says/w1", "einsums: DEMO/unit/says/w1/attestation"), "replay-mismatch"),
    }
    assert "gave 0 answers, not 1" in str(found["exits"].found)
    assert "not done within 45 s" in str(found["hangs"].found)
    assert result.exit_code == 1
    assert level(result) == ("bad", "1 of 7 graphs, 7 of 7 IRs, 1 of 7 attestations of 7 problems made again")


def test_who_kills_everything_ends_alone(tmp_path: Path, mark: str) -> None:
    path = published(tmp_path, {"kills": KILLS, "good": DOUBLE}, mark)
    result = verify(path, replay=Request())
    assert {error.path.rpartition("/")[2] for error in result.errors} <= {"kills"}
    assert result.replay is not None and result.replay.graphs.n == 2 - len(result.errors)


# Answers for itself what the publisher wants: the recorded graph's digest in place of its own.
LIES = """\
import sys
def run(x):
    frame = sys._getframe()
    while frame.f_code.co_name != "_remade":
        frame = frame.f_back
    child, item = sys.modules["solbench.release.replaying"], frame.f_locals["item"]
    made = child._made
    child._made = lambda kind, value: made(kind, item["graph"] if kind == "operator-graph" else value)
    return x * 3
"""


def test_a_reference_can_lie_about_itself_alone(tmp_path: Path, mark: str) -> None:
    """What --replay does not prove (docs/release.md): a text that nobody has read may answer for its own graph."""
    path = published(tmp_path, {"lies": LIES, "other": "def run(x):\n    return x * 3\n"}, mark)
    paths = [error.path for error in verify(path, replay=Request()).errors]
    assert "graphs: DEMO/unit/lies/w1" not in paths
    assert "graphs: DEMO/unit/other/w1" in paths


def test_an_interrupt_ends_the_children(tmp_path: Path, mark: str) -> None:
    path = published(tmp_path, {"hangs": HANGS, "too": HANGS, "three": HANGS}, mark)
    heed: Callable[[], object] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    code = "import sys; from solbench.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "verify", "--replay", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        preexec_fn=heed,
    )  # fmt: skip
    (tmp_path / "tmp").mkdir()
    deadline = time.monotonic() + 90
    while not running(mark):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "solbench: interrupted")
    assert "verified" not in out
    assert not list((tmp_path / "tmp").iterdir())
