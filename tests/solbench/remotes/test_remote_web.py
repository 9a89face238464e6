"""HTTP remotes: what a server may do, and what it may not get away with."""

from __future__ import annotations

import time

import pytest
from remote_checkout import files_below
from test_remote_pull import object_of, place

from solbench.errors import UndecidedError
from solbench.remotes.protocols import redirected
from solbench.remotes.wanted import Wanted


@pytest.fixture
def web(clone, serve):
    """A server over the remote, configured as the remote `web`."""
    server = serve(clone.folder)
    clone.add_remote("web", server.url, "verify = true")
    return server


def of(clone, which="artifact"):
    """The end of the address of an object."""
    return object_of(clone, place(clone, which)).relative_to(clone.folder).as_posix()


def answer(status, data=b"", **headers):
    def rule(handler):
        handler.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            if value is not None:
                handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(data)

    return rule


def endless(handler):
    """Bytes for as long as somebody takes them; at most what would fill a test machine's memory slowly."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for sent in range(1 << 14):
        try:
            handler.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            handler.server.gave_up = sent
            return


def dripping(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"x")
        time.sleep(0.1)


def test_pull_over_http(made, clone, web, capfd):
    assert clone.run("pull", "-r", "web") == 0
    assert "164 of them fetched now" in capfd.readouterr().out
    assert clone.outs() == made.outs()
    # One request an object, and nothing else: no run cache, no listing of folders.
    assert sorted(web.asked) == sorted(("GET", f"/files/md5/{name}") for name in files_below(clone.objects))


def test_check_over_http(clone, web, capsys):
    assert clone.run("remote", "check", "-r", "web") == 0
    assert "167 of 167 objects are there by name and size" in capsys.readouterr().out
    assert {method for method, path in web.asked if not path.endswith(".dir")} == {"HEAD"}
    assert clone.run("remote", "check", "-r", "web", "--full") == 0
    assert "by size and hashes" in capsys.readouterr().out
    web.rules[of(clone)] = answer(404)
    assert clone.run("remote", "check", "-r", "web") == 1
    assert "1 missing" in capsys.readouterr().out


def test_a_server_without_head(clone, web, capsys):
    plain = web.plain

    def no_head(handler):
        answer(501)(handler) if handler.command == "HEAD" else plain(handler, clone.folder)

    web.rules["c"] = no_head
    assert clone.run("remote", "check", "-r", "web") == 0


def test_a_page_instead_of_an_object_is_not_there(clone, web, capsys):
    """Servers that answer "not found" with a page and status 200."""
    web.rules[of(clone)] = answer(200, b"<h1>not found</h1>")
    assert clone.run("remote", "check", "-r", "web") == 1
    assert "18 bytes, expected" in capsys.readouterr().out


def test_push_is_refused(clone, web, capsys):
    assert clone.run("push", "-r", "web") == 4
    assert "HTTP is read-only" in capsys.readouterr().err
    assert web.asked == []


@pytest.mark.parametrize(
    "which", ["artifact", pytest.param("page", marks=pytest.mark.slow), pytest.param("listing", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("rule", "code", "why"),
    [
        (answer(404), 1, "missing"),
        (answer(200, b"x" * 40), 1, "expected"),
        (answer(200, b"x" * 40, Content_Length="20"), 1, "expected"),
        (endless, 1, "more than"),
        (answer(403), 3, "may not be read (HTTP 403)"),
        (answer(200, b"x" * 40, Content_Length="400", Connection="close"), 3, "remote web"),
        (answer(200, b"x" * 40, Content_Encoding="gzip"), 3, "nobody asked for"),
        (answer(302, Location="file:///etc/passwd"), 3, "not followed"),
        (answer(302, Location="//127.0.0.2/x"), 3, "not followed"),
        (answer(302, Location="/again"), 3, "redirect"),
        (answer(302), 3, "not followed"),
        (answer(206, b"x" * 40), 3, "HTTP 206"),
        (answer(200, Content_Length="-1"), 3, "remote web"),
    ],
    ids=lambda value: "" if callable(value) else str(value)[:12],
)
def test_a_server_that_lies(clone, web, capsys, which, rule, code, why):
    web.rules["/again"] = answer(302, Location="/again")
    web.rules[of(clone, which)] = rule
    assert clone.run("pull", "-r", "web") == code
    said = capsys.readouterr().err
    expected = "other bytes" if (which, why) in {("page", "expected"), ("listing", "expected")} else why
    assert expected in said and len(said.splitlines()) == 1
    assert not [name for name in clone.outs() if not name.endswith((".json", ".gitignore"))]
    assert not any(b"xxxx" in data for data in files_below(clone.root / ".dvc").values())


def test_endless_data_is_cut_at_the_size_that_git_states(clone, web):
    web.rules[of(clone)] = endless
    assert clone.run("pull", "-r", "web") == 1
    deadline = time.monotonic() + 20
    while not hasattr(web._server, "gave_up"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    # What the kernels' buffers hold, not a gigabyte.
    assert web._server.gave_up < 1000


@pytest.mark.parametrize("rule", [lambda handler: time.sleep(10), dripping], ids=["hangs", "drips"])
def test_a_server_that_hangs(clone, web, capsys, rule, monkeypatch):
    from solbench.remotes import protocols

    monkeypatch.setattr(protocols, "_SLOWEST_BYTES_PER_S", 10**6)
    clone.add_remote("hasty", web.url, "verify = true", "read_timeout = 1")
    web.rules[of(clone)] = rule
    assert clone.run("pull", "-r", "hasty") == 3
    assert "no answer in time" in capsys.readouterr().err


def test_a_failure_that_passes_is_tried_again(made, clone, web):
    failed = []

    def once(handler):
        if not failed:
            failed.append(handler.path)
            answer(503)(handler)
        else:
            web.plain(handler, clone.folder)

    web.rules[of(clone)] = once
    assert clone.run("remote", "check", "-r", "web", "--full") == 0
    assert failed


def test_a_server_that_always_fails(clone, web, capsys):
    web.rules[""] = answer(500)
    assert clone.run("pull", "-r", "web") == 3
    assert "HTTP 500" in capsys.readouterr().err


def test_a_redirect_on_the_same_host_is_followed(clone, web):
    path = of(clone)

    def moved(handler):
        handler.path = handler.path.replace("/moved", "")
        web.plain(handler, clone.folder)

    web.rules["/moved/" + path] = moved
    web.rules[path] = answer(301, Location=f"/moved/{path}")
    assert clone.run("remote", "check", "-r", "web", "--full") == 0
    assert ("GET", "/moved/" + path) in web.asked


def test_another_server_is_never_asked(clone, web, serve):
    other = serve(clone.folder)
    path = of(clone)
    web.rules[path] = answer(302, Location=f"{other.url}/{path}")
    assert clone.run("pull", "-r", "web") == clone.run("remote", "check", "-r", "web") == 3
    assert other.asked == []


def test_nobody_listens(clone, serve, capsys):
    server = serve(clone.folder)
    server.close()
    clone.add_remote("gone", server.url, "verify = true")
    assert clone.run("pull", "-r", "gone") == 3
    said = capsys.readouterr().err
    assert said.startswith("solbench: remote gone: the listing of ") and len(said.splitlines()) == 1
    assert clone.run("remote", "check", "-r", "gone") == 3
    out = capsys.readouterr().out
    # Three listings and a file; what else there would be, dvc.lock counts.
    assert "0 of 170 objects are there by name and size; 4 not known, 166 that a listing would name" in out


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "http://host:8000/b"),
        ("b", "http://host:8000/a/b"),
        ("http://host:8000/b", "http://host:8000/b"),
        ("http://HOST:8000/b", "http://HOST:8000/b"),
        ("https://host/b", "https://host/b"),
    ],
)
def test_redirects_that_are_followed(location, target):
    assert redirected("http://host:8000/a/x", location, Wanted("", "", 0)) == target


@pytest.mark.parametrize(
    "location",
    [
        "", "file:///etc/passwd", "ftp://host:8000/b", "//other/b", "http://host/b", "http://host:8000.evil/b",
        "http://host:8000@evil/b", "http://host:99999/b", "http://[::1/b", "http://evil#@host:8000/", "data:,x",
        "https://other/b", "gopher://host:8000/b",
    ],
)  # fmt: skip
def test_redirects_that_are_not(location):
    with pytest.raises(UndecidedError, match="not followed"):
        redirected("http://host:8000/a/x", location, Wanted("", "", 0))


def test_https_does_not_become_http():
    with pytest.raises(UndecidedError, match="not followed"):
        redirected("https://host/a", "http://host/a", Wanted("", "", 0))
