"""`solbench store`: what it lists, prints, traces, counts as not needed; and that it never writes or follows a link."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solbench import canonical, memo, store
from solbench.cli import run
from solbench.errors import InputError, IntegrityError
from solbench.release import garbage, inventory, reach
from solbench.site import render
from solbench.site.shown import need, shown
from solbench.store import Descriptor, Store

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-c", "import sys; from solbench.cli import main; main(sys.argv[1:])"]
TRACE = "cpu/full/DEMO/unit/scale/w1/fast"
HOSTILE = "\x1b[2J\u202egnp\n\x7f"


@pytest.fixture(scope="module")
def whole(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a store and its rendered site, which no test changes."""
    checkout = tmp_path_factory.mktemp("whole")
    (checkout / "problems").mkdir()
    shutil.copytree(sample / "store", checkout / "store")
    render(
        checkout / "store",
        checkout / "site",
        object_base="../store/{stage}/objects",
        templates=ROOT / "site_templates",
    )
    return checkout


@pytest.fixture
def checkout(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "checkout"))


def objects_of(root: Path) -> dict[str, Descriptor]:
    one = Store(root / "store")
    return {entry.digest: entry for stage in one.stages() for entry in one.index(stage).values()}


def descriptor(root: Path, stage: str, name: str) -> Descriptor:
    return Store(root / "store").index(stage)[name]


def path_of(root: Path, stage: str, name: str) -> Path:
    return root / "store" / stage / "objects" / descriptor(root, stage, name).path


def add(root: Path, stage: str, name: str, kind: str, data: bytes) -> Descriptor:
    """One more entry of a stage's index, and its object."""
    index = Store(root / "store").index(stage)
    index[name] = store.put(root / "store" / stage / "objects", kind, data)
    (root / "store" / f"{stage}.json").write_bytes(store.index_bytes(index))
    return index[name]


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run(["store", *arguments]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out if code != 2 else err


def test_ls_lists_every_entry_and_says_n_of_n(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Store(whole / "store")
    total = sum(len(one.index(stage)) for stage in one.stages())
    lines = told(capsys, "ls", "--root", str(whole)).splitlines()
    assert len(lines) == total + 1
    assert lines[-1].startswith(f"{total} of {total} entries, ")
    kernels = told(capsys, "ls", "code", "--kind", "kernel", "--root", str(whole)).splitlines()
    assert kernels[-1].startswith(f"1 of {total} entries")
    digest, size, kind, name = kernels[0].split()
    assert descriptor(whole, "code", name.removeprefix("code:")) == Descriptor(kind, digest, int(size))
    rows = json.loads(told(capsys, "ls", "code", "--json", "--root", str(whole)))
    assert {row["name"] for row in rows["entries"]} == set(one.index("code"))
    assert (rows["shown"], rows["total"]) == (len(one.index("code")), total)
    assert "no such stage" in told(capsys, "ls", "nothing", "--root", str(whole), code=2)


def test_ls_of_hostile_names_is_printable(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(checkout, "code", HOSTILE, "x\x07", b"{}")
    out = told(capsys, "ls", "code", "--root", str(checkout))
    assert all(line.isascii() and line.isprintable() for line in out.splitlines())
    assert len(out.splitlines()) == len(Store(checkout / "store").index("code")) + 1
    rows = json.loads(told(capsys, "ls", "code", "--json", "--root", str(checkout)))
    assert HOSTILE in {row["name"] for row in rows["entries"]}


def test_cat_gives_the_bytes_as_stored(whole: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for stage, name in (("timings", TRACE), ("code", _name(whole, "code-object")), ("code", _name(whole, "assembly"))):
        for text in (
            f"{stage}:{name}",
            descriptor(whole, stage, name).digest,
            descriptor(whole, stage, name).digest[7:19],
        ):
            capfdbinary.readouterr()
            assert run(["store", "cat", text, "--root", str(whole)]) == 0
            sys.stdout.flush()
            assert capfdbinary.readouterr().out == path_of(whole, stage, name).read_bytes()


def test_cat_pretty_is_the_same_value_and_printable(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = canonical.dumps({"kind": "score", "schema": "s.v1", "text": HOSTILE})
    add(checkout, "scores", "hostile", "score", data)
    out = told(capsys, "cat", "hostile", "--pretty", "--root", str(checkout))
    assert json.loads(out) == json.loads(data)
    assert all(line.isascii() and line.isprintable() for line in out.splitlines())
    assert "no JSON" in told(capsys, "cat", _name(checkout, "assembly"), "--pretty", "--root", str(checkout), code=2)


@pytest.mark.parametrize("kind", ["code-object", "assembly", "kernel"])
def test_a_terminal_gets_no_raw_bytes(whole: Path, kind: str) -> None:
    here, there = pty.openpty()
    try:
        done = subprocess.run(
            [*COMMAND, "store", "cat", _name(whole, kind), "--root", str(whole)],
            stdout=there, stderr=subprocess.PIPE, cwd=ROOT, timeout=60, check=False,
        )  # fmt: skip
        os.close(there)
        shown_bytes = os.read(here, 1 << 16) if kind == "kernel" else b""
    finally:
        os.close(here)
    assert done.returncode == (0 if kind == "kernel" else 2)
    assert shown_bytes.startswith(b'{"') if kind == "kernel" else b"a file or a pipe" in done.stderr


@pytest.mark.parametrize("damage", ["flip", "grow", "gone", "link", "pipe", "huge"])
def test_cat_prints_nothing_that_is_not_the_object(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    path = path_of(checkout, "timings", TRACE)
    data = path.read_bytes()
    path.unlink()
    match damage:
        case "flip":
            path.write_bytes(data[:-1] + b" ")
        case "grow":
            path.write_bytes(data + b" ")
        case "link":
            (tmp_path / "same").write_bytes(data)
            path.symlink_to(tmp_path / "same")
        case "pipe":
            os.mkfifo(path)
        case "huge":
            path.touch()
            os.truncate(path, 1 << 40)
    assert told(capsys, "cat", TRACE, "--root", str(checkout), code=1) == ""


def test_cat_of_what_is_too_large_to_hold(
    checkout: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The indexes still have to be read.
    limit = max(path.stat().st_size for path in (checkout / "store").glob("*.json"))
    large = add(checkout, "code", "large", "assembly", bytes(limit + 5000))
    monkeypatch.setattr(reach, "MAX_MANIFEST", limit + 1000)
    sys.stdout.flush()
    capfdbinary.readouterr()
    assert run(["store", "cat", large.digest, "--root", str(checkout)]) == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == bytes(limit + 5000)
    # Another writer between the check and the copy is noticed.
    chunks, calls = inventory.chunks, []

    def other(root: Path, path: str) -> Iterator[bytes]:
        calls.append(path)
        yield from chunks(root, path)
        if large.path in path and sum(large.path in call for call in calls) > 1:
            yield b"more"

    monkeypatch.setattr(inventory, "chunks", other)
    assert run(["store", "cat", large.digest, "--root", str(checkout)]) == 1


def test_what_may_not_be_read_is_not_called_missing(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(root: Path, path: str) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(inventory, "size", refuse)
    told(capsys, "cat", TRACE, "--root", str(checkout), code=3)


def test_a_name_of_several_objects_is_refused_and_names_them(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "DEMO/unit/scale/w1"
    err = told(capsys, "cat", name, "--root", str(checkout), code=2)
    assert f"graphs:{name}" in err and f"workloads:{name}" in err
    told(capsys, "cat", f"graphs:{name}", "--root", str(checkout))
    # Two objects with the same first digits, found by search: 4 digits need a few hundred tries.
    seen: dict[str, str] = {}
    for number in range(100_000):
        digits = blake3(b"%d" % number).hexdigest()
        if digits[:4] in seen:
            break
        seen[digits[:4]] = str(number)
    for text in (seen[digits[:4]], str(number)):
        store.put(checkout / "store" / "code" / "objects", "assembly", text.encode())
    err = told(capsys, "why", digits[:4], "--root", str(checkout), code=2)
    assert err.count("blake3:") == 2 and "names 2 objects" in err
    assert run(["store", "why", digits, "--root", str(checkout)]) == 0
    for text in ("abc", "blake3:", "0" * 64, "../../etc/passwd", HOSTILE):
        told(capsys, "why", text, "--root", str(checkout), code=2)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=80) | st.from_regex(r"(blake3:)?[0-9a-f]{1,66}", fullmatch=True))
def test_any_text_is_one_object_or_one_clear_error(whole: Path, text: str) -> None:
    found = reach.catalogue(whole / "store")
    try:
        digest = reach.find(found, text)
    except InputError:
        return
    assert digest in objects_of(whole)


@given(digits=st.integers(4, 64), choice=st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_prefix_finds_its_object_unless_another_begins_alike(whole: Path, digits: int, choice: Random) -> None:
    everything = sorted(objects_of(whole))
    digest = choice.choice(everything)
    prefix = digest[: len("blake3:") + digits]
    if sum(other.startswith(prefix) for other in everything) == 1:
        assert reach.find(reach.catalogue(whole / "store"), prefix) == digest


def test_tree_shows_each_object_once(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = reach.catalogue(whole / "store")
    assert found.release is not None
    nodes = reach.tree(found, found.release, sys.maxsize)
    assert len(nodes) == len({node.descriptor.digest for node in nodes}) == len(objects_of(whole))
    assert nodes[0].parent is None and [node.depth for node in nodes][:2] == [0, 1]
    depth = {node.descriptor.digest: node.depth for node in nodes}
    assert all(depth[node.parent] == node.depth - 1 for node in nodes if node.parent)
    lines = told(capsys, "tree", "--root", str(whole)).splitlines()
    assert len(lines) == 1 + 10 + 1  # the release, its sections, the sum
    assert lines[-1].startswith("11 of 11 objects can be read")
    score = descriptor(whole, "scores", "DEMO/unit/scale/w1@cpu/fast")
    rows = json.loads(told(capsys, "tree", score.digest, "--json", "--root", str(whole)))
    assert descriptor(whole, "timings", TRACE).digest in {row["digest"] for row in rows["objects"]}
    assert (rows["readable"], rows["total"]) == (len(rows["objects"]), len(rows["objects"]))


def test_tree_names_what_is_missing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path_of(checkout, "timings", TRACE).unlink()
    out = told(capsys, "tree", "scores:DEMO/unit/scale/w1@cpu/fast", "--root", str(checkout), code=1)
    assert "object is missing" in out


def test_why_leads_to_the_release_and_the_page(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = descriptor(whole, "timings", TRACE)
    found = reach.catalogue(whole / "store")
    why = need(found, trace.digest, whole / "site")
    assert why.names == (f"timings:{TRACE}",)
    assert descriptor(whole, "scores", "DEMO/unit/scale/w1@cpu/fast") in why.levels[0]
    assert why.release == descriptor(whole, "release", "release").digest
    pages = ("problems/DEMO/unit/scale", "solutions/DEMO/unit/scale/fast", "workloads/DEMO/unit/scale/w1")
    assert why.pages == tuple(f"{page}.html" for page in pages) and why.fault is None
    told(capsys, "why", trace.digest[7:19], "--root", str(whole))
    assert json.loads(told(capsys, "why", trace.digest, "--json", "--root", str(whole))) == why.as_dict()
    # The release is at the top: nothing refers to it, and it needs itself.
    top = need(found, why.release, whole / "site")
    assert top.levels == () and top.release == why.release


def test_why_of_what_nobody_needs(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stray = store.put(checkout / "store" / "code" / "objects", "assembly", b"stray")
    out = told(capsys, "why", stray.digest, "--root", str(checkout))
    assert "named by: no index" in out and "needed by release: none" in out and "no page links to it" in out


def test_why_with_gaps_says_so(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path_of(checkout, "scores", "DEMO/unit/scale/w1@cpu/fast").unlink()
    assert "could not be read: 1" in told(capsys, "why", TRACE, "--root", str(checkout), code=3)


def test_referrers_are_the_references_turned_round(whole: Path) -> None:
    found = reach.catalogue(whole / "store")
    graph = reach.referrers(found)
    up = {(child, parent.digest) for child, parents in graph.above.items() for parent in parents}
    down = {(c.digest, d.digest) for d in objects_of(whole).values() for c in reach.below(found, d)}
    assert up == down and len(up) > 50


@pytest.mark.parametrize("fault", ["none", "other release", "edited page", "linked page", "lost page", "bad name"])
def test_pages_that_are_not_of_this_release_say_nothing(checkout: Path, tmp_path: Path, fault: str) -> None:
    site, release = checkout / "site", descriptor(checkout, "release", "release")
    page = site / "index.html"
    assert shown(site, release).fault is None
    match fault:
        case "none":
            shutil.rmtree(site)
        case "other release":
            release = Descriptor("release", "blake3:" + "0" * 64, 1)
        case "edited page":
            page.write_bytes(page.read_bytes() + b" ")
        case "linked page":
            page.rename(tmp_path / "page")
            page.symlink_to(tmp_path / "page")
        case "lost page":
            page.unlink()
        case "bad name":
            manifest = canonical.loads((site / "site.json").read_bytes())
            manifest["pages"]["../x.html"] = "blake3:" + "0" * 64
            (site / "site.json").write_bytes(canonical.dumps(manifest))
    found = shown(site, release)
    assert found.fault and not found.pages


def test_gc_finds_what_nothing_reaches(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert garbage.in_store(reach.catalogue(checkout / "store")).garbage == ()
    objects = checkout / "store" / "code" / "objects"
    stray = store.put(objects, "assembly", b"stray")
    (objects / "00").mkdir(exist_ok=True)
    (objects / "00" / ".put-x").write_bytes(b"half")
    killed = checkout / "store" / ".code-x1"
    (killed / "objects" / "00").mkdir(parents=True)
    (killed / "objects" / "00" / "whole").write_bytes(b"seven b")
    (killed / "objects" / "link").symlink_to("/etc/passwd")
    misplaced = path_of(checkout, "timings", TRACE)
    copy = objects / misplaced.parent.name / misplaced.name
    copy.parent.mkdir(exist_ok=True)
    shutil.copyfile(misplaced, copy)
    sweep = garbage.in_store(reach.catalogue(checkout / "store"))
    wanted = {f"code/objects/{stray.path}": 5, "code/objects/00/.put-x": 4, ".code-x1/": 7}
    wanted[copy.relative_to(checkout / "store").as_posix()] = copy.stat().st_size
    assert {one.path: one.size for one in sweep.garbage} == wanted
    assert sweep.garbage_bytes == sum(wanted.values())
    out = told(capsys, "gc", "--dry-run", "--root", str(checkout))
    assert f"store: 4 of {sweep.files} files not needed, {sweep.garbage_bytes} of {sweep.bytes} bytes" in out
    assert json.loads(told(capsys, "gc", "--dry-run", "--json", "--root", str(checkout)))["store"] == sweep.as_dict()


def test_gc_keeps_what_only_the_release_reaches(checkout: Path) -> None:
    # The index went on, the release did not: its object is still needed.
    index = Store(checkout / "store").index("timings")
    del index[TRACE]
    (checkout / "store" / "timings.json").write_bytes(store.index_bytes(index))
    assert garbage.in_store(reach.catalogue(checkout / "store")).garbage == ()
    section = path_of(checkout, "release", "sections/timings")
    section.unlink()
    with pytest.raises(IntegrityError, match="missing"):
        garbage.in_store(reach.catalogue(checkout / "store"))


def test_gc_of_the_memo(checkout: Path) -> None:
    found = reach.catalogue(checkout / "store")
    one = Store(checkout / "store")
    graph = one.load("graphs", one.index("graphs")["DEMO/unit/add/w1"])
    program = one.load("einsums", one.index("einsums")["DEMO/unit/add/w1/graph"])
    for value in (graph, program):
        del value["kind"]
    known = memo.Memo(checkout / "memo")
    kept = {"aa01": {"graph": graph, "reason": None}, "aa02": {"program": program, "witness": {"x": 1}},
            "aa03": {"code": [graph], "files": {"x": "y"}}}  # fmt: skip
    lost = {"bb01": {"graph": {**graph, "path": "torchview"}, "reason": None}, "bb02": {"found": 1}, "bb03": [1.5, "x"],
            "bb04": {"graph": None, "reason": "nobody says so"}}  # fmt: skip
    for key, value in {**kept, **lost}.items():
        known.put(key, value)
    (checkout / "memo" / "cc").mkdir()
    (checkout / "memo" / "cc" / ".put-1").write_bytes(b"half")
    (checkout / "memo" / "cc" / "torn").write_bytes((checkout / "memo" / "aa" / "01").read_bytes()[:-1])
    (checkout / "memo" / "cc" / "link").symlink_to(checkout / "memo" / "aa" / "01")
    os.mkfifo(checkout / "memo" / "cc" / "pipe")
    (checkout / "memo" / "cc" / "huge").touch()
    os.truncate(checkout / "memo" / "cc" / "huge", 1 << 40)
    sweep = garbage.in_memo(checkout / "memo", [found])
    paths = {f"{key[:2]}/{key[2:]}" for key in lost} | {f"cc/{n}" for n in (".put-1", "torn", "link", "pipe", "huge")}
    assert {entry.path for entry in sweep.garbage} == paths
    assert sweep.files == len(paths) + len(kept)
    assert garbage.in_memo(checkout / "nothing", [found]).files == 0


def test_a_memo_entry_of_a_replay_or_a_refusal_is_reached(checkout: Path) -> None:
    one = Store(checkout / "store")
    program = one.load("einsums", one.index("einsums")["DEMO/unit/add/w1/graph"])
    small = {**program, "path": "torchview"}
    attestation = one.load("einsums", one.index("einsums")["DEMO/unit/add/w1/attestation"])
    digest = canonical.digest(canonical.dumps(small))
    attestation["subject"].append({"name": "small", "digest": {"blake3": digest.removeprefix("blake3:")}})
    del small["kind"]
    known = memo.Memo(checkout / "memo")
    known.put("aa01", {"program": small, "found": {}, "reason": None})
    known.put("aa02", {"graph": None, "reason": "it calls sort"})
    found = reach.catalogue(checkout / "store")
    assert len(garbage.in_memo(checkout / "memo", [found]).garbage) == 2
    add(checkout, "einsums", "new/attestation", "attestation", canonical.dumps(attestation))
    refusal = {"kind": "no-graph", "schema": "solbench.no-graph.v1", "reason": "it calls sort"}
    add(checkout, "graphs", "new", "no-graph", canonical.dumps(refusal))
    assert garbage.in_memo(checkout / "memo", [reach.catalogue(checkout / "store")]).garbage == ()


def test_the_memo_serves_the_local_release_too(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = {"schema": "solar.operator-graph.v1", "path": "aten"}
    memo.Memo(checkout / ".solbench" / "memo").put("aa01", {"graph": graph, "reason": None})
    local = checkout / "local"
    (local / "store").mkdir(parents=True)  # one that has no index yet says nothing
    assert ".solbench/memo: 1 of 1 files" in told(capsys, "gc", "--dry-run", "--root", str(checkout))
    shutil.copytree(checkout / "store", local / "store", dirs_exist_ok=True)
    add(local, "graphs", "new", "operator-graph", store.encode("operator-graph", graph))
    for root in (checkout, local):
        assert ".solbench/memo: 0 of 1 files" in told(capsys, "gc", "--dry-run", "--root", str(root))


def test_gc_only_lists(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "only --dry-run exists" in told(capsys, "gc", "--root", str(whole), code=2)


def test_a_store_without_an_index_and_a_bad_index(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "store" / "code.json").write_bytes(b"{")
    assert run(["store", "ls", "--root", str(checkout)]) == 1
    shutil.rmtree(checkout / "store")
    (checkout / "store").mkdir()
    with pytest.raises(InputError, match="no index here"):
        reach.catalogue(checkout / "store")


def test_an_index_behind_a_link_is_refused_not_left_out(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = checkout / "store" / "code.json"
    index.rename(tmp_path / "code.json")
    index.symlink_to(tmp_path / "code.json")
    for arguments in (["ls"], ["tree"], ["gc", "--dry-run"], ["why", TRACE], ["cat", TRACE]):
        assert told(capsys, *arguments, "--root", str(checkout), code=1) == ""


def test_nothing_is_written(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memo.Memo(checkout / ".solbench" / "memo").put("aa01", {"x": 1})

    def state() -> dict[str, tuple[int, int, int]]:
        return {
            str(path): (path.lstat().st_mtime_ns, path.lstat().st_size, path.lstat().st_mode)
            for path in checkout.rglob("*")
        }

    before = state()
    trace = descriptor(checkout, "timings", TRACE).digest
    for arguments in (["ls"], ["cat", trace], ["tree"], ["tree", trace], ["fsck"], ["gc", "--dry-run"], ["why", trace]):
        assert run(["store", *arguments, "--root", str(checkout)]) == 0
    assert state() == before


def test_it_runs_without_torch_and_dvc(whole: Path) -> None:
    block = "import sys\nfor m in ('torch', 'numpy', 'triton', 'dvc'): sys.modules[m] = None\n"
    code = (
        f"{block}from solbench.cli import run\nfor a in ('ls', 'tree', 'fsck', 'gc --dry-run', 'why {TRACE}'):\n"
        f"    assert run(['store', *a.split(), '--root', {str(whole)!r}]) == 0, a\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def _name(root: Path, kind: str) -> str:
    return next(name for name, entry in Store(root / "store").index("code").items() if entry.kind == kind)
