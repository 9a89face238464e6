"""A small checkout whose outs were made by DVC, its remote in a folder, and web servers over it that may lie."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from solbench import cli, pipeline

ROOT = Path(__file__).resolve().parents[3]
OUTS = ("store/corpus", "store/code", "site", "notes.txt")

# Two stages with objects and an index, as ours are; a folder of plain files; a single file.
MAKE = """\
import sys
from pathlib import Path

sys.path.insert(0, "{root}")
from solbench.store import encode
from solbench.workspace import stage_output

stage, store = sys.argv[1], Path("store")
if stage == "corpus":
    with stage_output(store, stage) as out:
        for number in range(120):
            value = {{"schema": "x.v1", "number": number, "text": "word " * number}}
            out.put("problem-%d" % number, "definition", value)
elif stage == "code":
    with stage_output(store, stage) as out:
        out.put_bytes("empty", "code-object", b"")
        out.put_bytes("large", "code-object", bytes(range(256)) * 1500)
        # The same object in two stages.
        out.put("problem-7", "definition", {{"schema": "x.v1", "number": 7, "text": "word " * 7}})
        for number in range(20):
            out.put_bytes("object-%d" % number, "code-object", b"\\x7fELF" + bytes([number]) * 5000)
else:
    site = Path("site")
    (site / "assets").mkdir(parents=True)
    (site / "index.html").write_text("<title>n of N</title>")
    (site / "assets" / "page.css").write_bytes(b"")
    (site / "copy").write_bytes(encode("definition", {{"schema": "x.v1", "number": 7, "text": "word " * 7}}))
    for number in range(20):
        (site / ("page-%d.html" % number)).write_text("<p>%d</p>" % number * 50)
    Path("notes.txt").write_text("one file that is an out\\n")
"""
STAGES = """\
stages:
  corpus:
    cmd: {python} make.py corpus
    deps: [make.py]
    outs:
      - store/corpus
      - store/corpus.json: {{cache: false}}
  code:
    cmd: {python} make.py code
    deps: [make.py]
    outs:
      - store/code
      - store/code.json: {{cache: false}}
  site:
    cmd: {python} make.py site
    deps: [store/code.json]
    outs: [site, notes.txt]
"""
CONFIG = """\
[core]
    no_scm = true
    analytics = false
    check_update = false
    autostage = false
    remote = folder
[cache]
    type = "reflink,copy"
['remote "folder"']
    url = {folder}
    verify = true
"""


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` and its bytes; a link as what it points to."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = b"-> " + os.readlink(path).encode()
        elif path.is_file():
            found[name] = path.read_bytes()
        elif not path.is_dir():
            found[name] = b"special"
    return found


class Checkout:
    """A DVC root at ``root`` and its remote ``folder``, a folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.objects = folder / "files" / "md5"
        self.cache = root / ".dvc" / "cache" / "files" / "md5"
        (root / ".dvc" / "config").write_text(CONFIG.format(folder=folder))

    def outs(self) -> dict[str, bytes]:
        """Every file of every out, and of anything else below store/."""
        below = {f"store/{name}": data for name, data in files_below(self.root / "store").items()}
        below |= {f"site/{name}": data for name, data in files_below(self.root / "site").items()}
        notes = self.root / "notes.txt"
        return below | ({"notes.txt": notes.read_bytes()} if notes.is_file() else {})

    def add_remote(self, name: str, url: str, *lines: str) -> None:
        text = "\n".join([f"['remote \"{name}\"']", f"    url = {url}", *(f"    {line}" for line in lines)])
        with (self.root / ".dvc" / "config").open("a") as file:
            file.write(text + "\n")

    def run(self, *arguments: str) -> int:
        return cli.run([*arguments, "--root", str(self.root)])

    def dvc(self, *arguments: str) -> int:
        return pipeline.run_dvc(self.root, self.root, *arguments)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The checkout that was rebuilt by DVC, and a remote with all of it; not to be changed."""
    top = tmp_path_factory.mktemp("made")
    root = top / "checkout"
    (root / "problems").mkdir(parents=True)
    (root / ".dvc").mkdir()
    checkout = Checkout(root, top / "remote")
    (root / "make.py").write_text(MAKE.format(root=ROOT))
    (root / "dvc.yaml").write_text(STAGES.format(python=sys.executable))
    assert checkout.dvc("repro", "-q") == 0
    # What a push makes (test_remote_push.py): a remote is laid out as the cache is.
    shutil.copytree(checkout.cache, checkout.objects)
    return checkout


@pytest.fixture
def checkout(made: Checkout, tmp_path: Path) -> Checkout:
    """A copy with everything in it, and a remote with everything on it."""
    shutil.copytree(made.root, tmp_path / "checkout", ignore=shutil.ignore_patterns("tmp", ".solbench"))
    shutil.copytree(made.folder, tmp_path / "remote")
    return Checkout(tmp_path / "checkout", tmp_path / "remote")


@pytest.fixture
def clone(made: Checkout, tmp_path: Path) -> Checkout:
    """What git would give, without objects, and a remote with everything on it."""
    shutil.copytree(made.folder, tmp_path / "remote")
    return fresh_clone(made, tmp_path / "clone", tmp_path / "remote")


def fresh_clone(made: Checkout, root: Path, folder: Path) -> Checkout:
    ignored = shutil.ignore_patterns("tmp", "cache", ".solbench", "objects", "site", "notes.txt")
    shutil.copytree(made.root, root, ignore=ignored)
    for stage in ("corpus", "code"):
        (root / "store" / stage).rmdir()
    return Checkout(root, folder)


class Server:
    """Serves a folder on loopback; ``rules``: by the end of a path, "" for all, what answers instead."""

    def __init__(self, folder: Path) -> None:
        self.rules: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked.append((self.command, self.path))
                for end, rule in outer.rules.items():
                    if self.path.endswith(end):
                        rule(self)
                        return
                outer.plain(self, folder)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: object) -> None:
                """Clients that hang up are the point of many tests."""

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @staticmethod
    def plain(handler: BaseHTTPRequestHandler, folder: Path) -> None:
        path = folder / handler.path.lstrip("/")
        data = path.read_bytes() if path.is_file() else b"not found"
        handler.send_response(200 if path.is_file() else 404)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(data)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    servers: list[Server] = []

    def start(folder: Path) -> Server:
        servers.append(Server(folder))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def clone_of(made: Checkout, tmp_path: Path) -> Callable[[Checkout], Checkout]:
    """Another clone, without objects, of a checkout's remote."""
    return lambda checkout: fresh_clone(made, tmp_path / "another", checkout.folder)
