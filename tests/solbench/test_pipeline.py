"""The pipeline file, the local DVC root derived from it, durations, and the lock."""

from __future__ import annotations

import os
import subprocess
import sys
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
    assert " ".join(local) == ("corpus workloads graphs einsums calibrate bounds measure timings scores release site")
    for name, stage in local.items():
        assert not [path for path in outs_of(stage) if path.startswith("..")], name
        for path in stage["deps"]:
            code = path.removeprefix("../").split("/")[0] in ("solbench", "solar", "problems", "site_templates")
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
