"""``solbench verify`` and ``solbench score`` as a user and a script meet them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_release import rewrite

from solbench.cli import run
from solbench.store import Store

COMMAND = [sys.executable, "-c", "import sys; from solbench.cli import main; main(sys.argv[1:])"]


def root_of(sample: Path) -> str:
    return Store(sample / "store").index("release")["release"].digest


def objects_of(sample: Path) -> int:
    store = Store(sample / "store")
    return len({entry.digest for stage in store.stages() for entry in store.index(stage).values()})


def test_a_line_a_level_and_one_verdict(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(sample / "sample.zip")]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:10]] == [
        "safety", "hashes", "closure", "schemas", "scores", "bounds", "code", "readiness", "site", "replay",
    ]  # fmt: skip
    assert all(line.split()[1] == "ok" for line in lines[:9])
    assert lines[9].split()[1] == "skipped"
    assert lines[10].startswith(f"verified {root_of(sample)}: {objects_of(sample)} objects, ")
    assert lines[10].endswith("(self-consistent; no expected root given)")
    assert "not who made it" in lines[11]
    assert (len(lines), err) == (12, "")


def test_the_expected_root(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(sample / "sample"), "--expect-root", root_of(sample)]) == 0
    assert "(matches the expected root)" in capsys.readouterr().out
    assert run(["verify", str(sample / "sample"), "--expect-root", "0" * 64]) == 1
    out = capsys.readouterr().out
    assert "root-mismatch  release.json: expected blake3:0000" in out
    assert "not the expected root" in out
    assert "self-consistent" not in out
    assert run(["verify", str(sample / "sample"), "--expect-root", "abc"]) == 2
    assert capsys.readouterr().err.startswith("solbench: --expect-root: ")


def test_json_is_one_document(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--json", str(sample / "sample.zip")]) == 0
    value = json.loads(capsys.readouterr().out)
    assert {"verdict", "root", "matches_expected", "objects", "bytes", "levels", "errors"} <= set(value)
    assert (value["verdict"], value["root"], value["errors"]) == ("verified", root_of(sample), [])
    assert (value["matches_expected"], value["trust"], value["objects"]) == (None, "none", objects_of(sample))


def test_quiet_prints_only_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--quiet", str(folder)]) == 0
    assert capsys.readouterr().out == ""
    (folder / "B3SUMS").write_bytes(b"")
    assert run(["verify", "--quiet", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("missing-entry  B3SUMS: ") for line in lines)


def test_errors_are_sorted_and_say_where(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, "scores", "cpu/fast", lambda value: {**value, "s": 0.9, "failed": 0})
    assert run(["verify", "--json", str(folder)]) == 1
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert [(error["code"], error["path"]) for error in errors] == [
        ("count-mismatch", "scores: cpu/fast: failed"),
        ("score-mismatch", "scores: cpu/fast: s"),
    ]
    assert (errors[0]["expected"], errors[0]["found"]) == ("1", "0")


@pytest.mark.parametrize("name", ["\x1b[2J\x1b]0;owned\x07", "a\nb", "\u202egnp", "\udcff"])
def test_hostile_names_do_not_reach_the_terminal(folder: Path, capsysbinary: object, name: str) -> None:
    os.close(
        os.open(os.fsencode(folder / "site") + b"/" + name.encode("utf-8", "surrogateescape"), os.O_CREAT | os.O_WRONLY)
    )
    for options in ([], ["--json"], ["--quiet"]):
        assert run(["verify", *options, str(folder)]) == 1
        out = capsysbinary.readouterr().out  # type: ignore[attr-defined]
        assert all(byte == 0x0A or 0x20 <= byte < 0x7F for byte in out)
        assert b"path-" in out


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify"]) == 2
    assert run(["verify", str(tmp_path / "missing")]) == 2
    assert "no such file or directory" in capsys.readouterr().err
    assert run(["verify", "--max-files", "0", str(tmp_path)]) == 2


@pytest.mark.parametrize("option", ["--max-files", "--max-manifest", "--max-object", "--max-total"])
def test_limits_leave_it_undecided(sample: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert run(["verify", option, "10", str(sample / "sample.zip")]) == 3
    assert "CANNOT DECIDE" in capsys.readouterr().out


def test_a_linked_bundle_shows_where_it_really_is(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.zip").symlink_to(sample / "sample.zip")
    assert run(["verify", str(tmp_path / "link.zip")]) == 0
    assert os.path.realpath(sample / "sample.zip") in capsys.readouterr().out


def test_a_defect_of_the_verifier_is_no_verdict(
    sample: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("solbench.release.levels.site", broken)
    assert run(["verify", str(sample / "sample.zip")]) == 3
    captured = capsys.readouterr()
    assert "verified" not in captured.out
    assert "a defect of the verifier" in captured.err


def test_an_interrupt_ends_with_130(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solbench.release.levels.hashes", interrupted)
    assert run(["verify", str(sample / "sample.zip")]) == 130


def test_a_real_interrupt(tmp_path: Path) -> None:
    # Hashing a sparse file of 100 GB takes longer than we wait.
    path = tmp_path / "bundle" / "site"
    path.mkdir(parents=True)
    with (path / "big").open("wb") as file:
        file.truncate(100 << 30)
    arguments = [*COMMAND, "verify", "--max-object", str(200 << 30), str(path.parent)]
    # A shell's background jobs ignore interrupts, and would bequeath that.
    heed: Callable[[], object] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )  # fmt: skip
    assert process.stdout is not None
    deadline = time.monotonic() + 20
    while not process.stdout.readline().startswith("safety") and time.monotonic() < deadline:
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read().strip() == "solbench: interrupted"
    process.stderr.close()


def test_the_same_bytes_in_any_surroundings(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "bundle.zip").write_bytes((sample / "sample.zip").read_bytes())
    found = set()
    for environment, here, path in (
        ({"LANG": "C", "LC_ALL": "C"}, tmp_path, "bundle.zip"),
        ({"LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "HOME": "/nowhere"}, Path("/"), str(sample / "sample.zip")),
        ({"PYTHONHASHSEED": "7", "COLUMNS": "30"}, sample, "sample.zip"),
    ):
        for options in ([], ["--json"]):
            done = subprocess.run(
                [*COMMAND, "verify", *options, path], cwd=here, env=environment, capture_output=True, check=True
            )
            assert done.stderr == b""
            found.add((*options, done.stdout))
    assert len(found) == 2


def test_verifying_a_read_only_copy_twice_at_once(sample: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sample / "sample", tmp_path / "bundle"))
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    processes = [
        subprocess.Popen([*COMMAND, "verify", "--quiet", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    assert [(process.communicate()[0], process.returncode) for process in processes] == [(b"", 0)] * 2
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)


def test_no_torch_no_numpy_and_fast(sample: Path) -> None:
    code = (
        "import sys; from solbench.cli import run; code = run(['verify', sys.argv[1]]);"
        "print(sorted({'torch', 'numpy', 'triton', 'dvc'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(sample / "sample.zip")], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


# -- solbench score


def test_scores_say_n_of_n(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", "--store", str(sample / "store")]) == 0
    out = capsys.readouterr().out
    eager, fast, rest = out.partition("cpu  fast")
    assert "cpu  eager  (full protocol)" in eager
    assert "S 0.5000 [" in eager
    assert "2 of 3 workloads count, 1 of 2 problems have one that counts" in eager
    assert "    0.5000  2 of 2  DEMO/unit/scale" in eager
    assert "         -  0 of 1  DEMO/unit/add" in eager
    assert "scored 1, failed 1, not attempted 1" in rest
    assert "    0.0000  0 of 1  DEMO/unit/add" in rest
    assert "gfx1200: not timed, no entry" in rest
    assert fast


def test_scores_of_one_target(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", "--store", str(sample / "store"), "--target", "gfx1200"]) == 0
    assert capsys.readouterr().out == "gfx1200: not timed, no entry\n"
    assert run(["score", "--store", str(sample / "store"), "--target", "sm_90"]) == 2
    assert "it has cpu, gfx1200" in capsys.readouterr().err


def test_scores_as_json(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", "--store", str(sample / "store"), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["targets"] == ["cpu", "gfx1200"]
    assert sorted(value["entries"]) == ["cpu/eager", "cpu/fast"]


def test_scores_of_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", "--store", str(tmp_path)]) == 2
    assert "solbench repro" in capsys.readouterr().err
