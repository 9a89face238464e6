"""The pipeline file, the local DVC root derived from it, durations, and the lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from solbench import pipeline
from solbench.errors import InputError, UndecidedError
from solbench.stages import STAGES

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = yaml.safe_load((ROOT / "dvc.yaml").read_text())


def outs_of(stage):
    return [next(iter(out)) if isinstance(out, dict) else out for out in stage["outs"]]


def test_every_stage_of_the_pipeline_has_a_function():
    for name, stage in PUBLISHED["stages"].items():
        assert stage["cmd"] == f"solbench stage {name}"
        assert name in STAGES


def test_every_dependency_exists_or_is_made_by_a_stage_before():
    made: set[str] = set()
    for name, stage in PUBLISHED["stages"].items():
        for path in stage["deps"]:
            assert path in made or (ROOT / path).exists(), f"{name}: {path}"
        made.update(outs_of(stage))


def test_forbidden_dvc_features_are_not_used():
    """DESIGN §3: frozen, persist and always_changed make a rebuild something else than a rebuild."""
    text = (ROOT / "dvc.yaml").read_text()
    assert not [word for word in ("frozen", "persist", "always_changed") if word in text]
    config = (ROOT / ".dvc" / "config").read_text()
    assert config.count("['remote") == config.count("verify = true") == 1
    assert "analytics = false" in config and "check_update = false" in config


def test_local_stages_keep_code_outside_and_results_inside():
    local = pipeline.local_stages(PUBLISHED)["stages"]
    assert " ".join(local) == (
        "corpus workloads graphs einsums code verdicts calibrate bounds measure timings scores readiness release site"
    )
    for name, stage in local.items():
        assert not [path for path in outs_of(stage) if path.startswith("..")], name
        for path in stage["deps"]:
            code = path.removeprefix("../").split("/")[0] in ("solbench", "solar", "problems", "site_templates")
            code = code or path in ("../measurements/code", "../measurements/verdicts")
            assert path.startswith("../") == code, f"{name}: {path}"
    assert "release/local.json" in outs_of(local["release"])
    assert "machine.json" in local["calibrate"]["deps"] and "machine.json" in local["measure"]["deps"]
    assert "hardware" in local["bounds"]["deps"] and "measurements" not in local["bounds"]["deps"]


@pytest.mark.parametrize(("text", "seconds"), [("300", 300), ("300s", 300), ("10m", 600), ("1.5h", 5400)])
def test_durations(text, seconds):
    assert pipeline.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-5s", "ten", "5d", "1e3"])
def test_not_a_duration(text):
    with pytest.raises(InputError, match="--budget"):
        pipeline.parse_duration(text)


def test_one_repro_a_workspace_and_the_lock_ends_with_its_owner(tmp_path):
    hold = (
        "import sys, time\nfrom pathlib import Path\nfrom solbench.pipeline import repro_lock\n"
        "with repro_lock(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None and owner.stdout.readline() == "held\n"
        with pytest.raises(UndecidedError, match=f"process {owner.pid}"), pipeline.repro_lock(tmp_path):
            pass
    finally:
        owner.kill()
        owner.wait()
    with pipeline.repro_lock(tmp_path):
        assert (tmp_path / ".solbench" / "repro.lock").read_text() == f"process {os.getpid()}"


def test_what_a_killed_run_left_is_cleared(tmp_path):
    rwlock = tmp_path / ".dvc" / "tmp" / "rwlock"
    rwlock.parent.mkdir(parents=True)
    orphan = tmp_path / "store" / ".graphs-abc"
    kept = tmp_path / "store" / "graphs"
    for folder in (orphan / "objects", kept):
        folder.mkdir(parents=True)

    def held_by(pid):
        owner = {"pid": pid, "cmd": "dvc repro"}
        return json.dumps({"write": {"/a/store/corpus": owner}, "read": {"/a/problems": [owner]}})

    # No DVC: half a file, a process that is gone, one that has the id of a dead DVC.
    ended = subprocess.Popen(["true"])
    ended.wait()
    for text in ('{"write": {"/a', held_by(ended.pid), held_by(os.getppid()), '{"write": []}'):
        rwlock.write_text(text)
        pipeline.clear_remains(tmp_path)
        assert not rwlock.exists(), text
    assert kept.is_dir() and not orphan.exists()
    command = ["sh", "-c", "echo; read line; exit", "dvc"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"\n"
        rwlock.write_text(held_by(running.pid))
        pipeline.clear_remains(tmp_path)
        assert rwlock.exists()
    # Ended but not yet waited for: a zombie.
    zombie = subprocess.Popen(["sh", "-c", "exit", "dvc"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    rwlock.write_text(held_by(zombie.pid))
    pipeline.clear_remains(tmp_path)
    assert not rwlock.exists()
    zombie.wait()


def test_dvc_dies_with_its_wrapper(tmp_path):
    """A killed ``solbench repro`` gives the lock back, so nothing of it may run on."""
    marker = tmp_path / "pid"
    (tmp_path / "dvc").mkdir()
    (tmp_path / "dvc" / "__init__.py").touch()
    (tmp_path / "dvc" / "__main__.py").write_text(
        f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    code = (
        f"from solbench import pipeline; from pathlib import Path; p = Path({str(tmp_path)!r}); pipeline.run_dvc(p, p)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    wrapper = subprocess.Popen([sys.executable, "-c", code], env=environment)
    deadline = time.monotonic() + 20
    while not (marker.exists() and marker.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    wrapper.kill()
    wrapper.wait()
    pid = int(marker.read_text())
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.02)
