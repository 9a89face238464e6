"""`solbench device` as a user runs it, and what the doctor says, over the fake amdsmi."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from device_fakes import UUIDS, Cards, start

from solbench.cli import run
from solbench.device import doctor, evidence, locks, native
from solbench.device.ownership import own

Here = Callable[..., subprocess.CompletedProcess[str]]
SOLBENCH = (sys.executable, "-c", "import sys; from solbench.cli import run; sys.exit(run(sys.argv[1:]))")
WAIT = (*SOLBENCH, "device", "lock", "--", sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")
SAY = "import os; print(os.environ['GPU_LOCK_UUID'], open(os.environ['FAKE_AMDSMI']).read().count('STABLE_PEAK'))"


@pytest.fixture
def fake(tmp_path: Path) -> Cards:
    return Cards(tmp_path)


def command(fake: Cards, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SOLBENCH, "device", *arguments], env={**fake.environment, **environment}, cwd=fake.locks,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def here(fake: Cards, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """Like :func:`command`, in this process."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            start(fake, patch)
            for name, value in {**fake.environment, **environment}.items():
                patch.setenv(name, value)
            code = run(["device", *arguments])
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return call


def test_list(fake: Cards, here: Here) -> None:
    done = here("list")
    assert done.returncode == 0
    assert done.stdout.split() == [
        UUIDS[0], "AMD", "Radeon", "RX", "9060", "XT", "gfx1200", "0000:03:00.0", "16.0", "GiB", "2780", "MHz,",
        "level", "AUTO",
    ]  # fmt: skip
    value = json.loads(here("list", "--json").stdout)
    assert value["cards"][0]["uuid"] == UUIDS[0] and value["cards"][0]["observation"]["power_w"] == 141
    fake.script_all(cards=[])
    assert (done := here("list")).returncode == 4 and "no GPU that can be measured" in done.stderr
    assert (done := here("list", "--json")).returncode == 4 and json.loads(done.stdout)["cards"] == []


def test_a_bare_gpu_machine_needs_little(fake: Cards) -> None:
    """The image of a lent machine may lack everything but click and PyYAML."""
    block = (
        "import sys\nfor name in ('torch', 'numpy', 'pydantic', 'blake3', 'rfc8785', 'dvc'): sys.modules[name] = None\n"
    )
    code = f"{block}from solbench.cli import run; sys.exit(run(['device', 'lock', '--', 'true']))"
    done = subprocess.run([sys.executable, "-c", code], env=fake.environment, cwd=fake.locks, timeout=60, check=False)
    assert done.returncode == 0


def test_lock_runs_a_command_with_stable_clocks(fake: Cards, here: Here) -> None:
    done = here("lock", "--", sys.executable, "-c", f"{SAY}; raise SystemExit(5)")
    assert done.returncode == 5 and done.stdout.split() == [UUIDS[0], "1"]
    assert done.stderr == f"solbench: {UUIDS[0]}: STABLE_PEAK\n" and fake.level() == "AUTO"
    fake.script(set={"STABLE_PEAK": "refused"})
    done = here("lock", "--uuid", UUIDS[0], "--", sys.executable, "-c", SAY)
    assert done.returncode == 0 and "clocks unlocked: amdsmi_set_gpu_perf_level" in done.stderr
    done = here("lock", "--", "/no/such/program")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2, "solbench: /no/such/program: cannot be started: No such file or directory",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "arguments", "code", "said"),
    [
        ({"GPU_LOCK_INDEX": "0"}, (), 2, "GPU_LOCK_INDEX: a lock belongs to a card, and indexes change"),
        ({"GPU_LOCK_UUID": "0"}, (), 2, "GPU_LOCK_UUID=0: not a UUID"),
        ({"GPU_LOCK_UUID": UUIDS[1]}, (), 2, f"card {UUIDS[1]}: no card here has this UUID"),
        ({"GPU_LOCK_DIR": ""}, (), 2, "GPU_LOCK_DIR: no lock folder named"),
        ({"HSA_OVERRIDE_GFX_VERSION": "12.0.0"}, (), 2, "HSA_OVERRIDE_GFX_VERSION: makes ROCm run code"),
        ({}, ("--lock-dir", "/no/such"), 2, "--lock-dir /no/such: no such folder"),
        ({"GPU_LOCK_DIR": "/no/such"}, (), 2, "GPU_LOCK_DIR=/no/such: no such folder"),
        ({}, ("--uuid", "0"), 2, "--uuid 0: not a UUID"),
    ],
)
def test_lock_refuses(
    here: Here, environment: dict[str, str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = here("lock", *arguments, "--", "true", **environment)
    assert done.returncode == code and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_card_that_is_owned_or_busy_cannot_be_locked(fake: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, (card,) = start(fake, monkeypatch)
    with own(driver, card, fake.locks):
        done = command(fake, "lock", "--timeout", "0.2", "--", "true")
        assert done.returncode == 3 and f"owned by pid {os.getpid()}" in done.stderr
        assert (done := command(fake, "recover")).returncode == 3 and "nothing to recover before it ends" in done.stderr
    fake.script(processes=[[1, "train", 5]])
    fake.script_all(computing=[1])
    done = command(fake, "lock", "--", "true")
    assert done.returncode == 3 and "busy with train (pid 1)" in done.stderr


def test_a_killed_owner_blocks_until_recover(fake: Cards) -> None:
    with subprocess.Popen(WAIT, env=fake.environment, stdout=-1, stderr=-1) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"up\n"
        (child,) = (int(pid) for pid in Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split())
        owner.kill()
        owner.wait(10)
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while locks.is_held(locks.ownership(fake.locks, UUIDS[0])) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert fake.level() == "STABLE_PEAK"
    done = command(fake, "lock", "--", "true")
    assert done.returncode == 3 and f"run `solbench device recover --uuid {UUIDS[0]}`" in done.stderr
    assert f"left by pid {owner.pid}" in command(fake, "doctor").stdout
    done = command(fake, "recover")
    assert done.returncode == 0 and f"recovered from pid {owner.pid}" in done.stdout and "level AUTO" in done.stdout
    assert fake.level() == "AUTO"
    assert command(fake, "recover").stdout == f"{UUIDS[0]}: nothing to recover\n"
    assert command(fake, "lock", "--", "true").returncode == 0


def test_sigterm_ends_the_command_and_restores(fake: Cards) -> None:
    for number, expected in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        with subprocess.Popen(WAIT, env=fake.environment, stdout=-1, stderr=-1) as owner:
            assert owner.stdout is not None and owner.stdout.readline() == b"up\n"
            owner.send_signal(number)
            owner.wait(30)
        assert owner.returncode == expected and fake.level() == "AUTO"


@pytest.fixture
def nodes(fake: Cards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Device nodes of a machine where everything is right, for root."""
    start(fake, monkeypatch)
    folder = tmp_path / "dev"
    (folder / "dri").mkdir(parents=True)
    (folder / "kfd").touch()
    (folder / "dri" / "renderD128").touch()
    monkeypatch.setattr(native, "locate", lambda _: tmp_path / "libamdhip64.so")
    monkeypatch.setattr(native, "Runtime", lambda *_: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def examine(fake: Cards, nodes: Path, **environment: str) -> tuple[int, dict[str, doctor.Finding]]:
    findings = doctor.examine({"GPU_LOCK_DIR": str(fake.locks), **environment}, devices=nodes)
    return doctor.exit_code(findings), {finding.what: finding for finding in findings}


def test_a_healthy_machine(fake: Cards, nodes: Path) -> None:
    code, findings = examine(fake, nodes)
    assert code == 0
    assert {f.verdict for f in findings.values() if f.where != "cuda"} == {"ok"}
    assert "level AUTO; STABLE_PEAK can be set" in findings
    fake.script(processes=[[1, "Xorg", 5]])
    code, findings = examine(fake, nodes, HIP_VISIBLE_DEVICES="0")
    assert code == 0 and findings["Xorg (pid 1) draws; times will vary more"].verdict == "note"
    assert findings["hides or renumbers cards; they are found by PCI address"].where == "HIP_VISIBLE_DEVICES=0"


def test_each_thing_that_is_missing_is_said(fake: Cards, nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert examine(fake, nodes, GPU_LOCK_DIR="/no/such")[0] == 3
    code, findings = examine(fake, nodes, HSA_OVERRIDE_GFX_VERSION="11.0.0")
    assert code == 3 and findings["makes ROCm run code of another architecture"].do == "unset it"
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != nodes / "kfd")
    code, findings = examine(fake, nodes)
    assert code == 3 and "render,video" in findings["not readable and writable for this user"].do
    monkeypatch.undo()


def test_what_blocks_a_card_is_said(fake: Cards, nodes: Path) -> None:
    fake.script(processes=[[1, "train", 5]])
    fake.script_all(computing=[1])
    code, findings = examine(fake, nodes)
    assert code == 3 and findings["train (pid 1) computes"].do == "end it before measuring"
    fake.script_all(computing=[])
    evidence.write(
        fake.locks, evidence.Evidence(UUIDS[0], "t", evidence.Owner(9, 9, "b", "solbench"), "AUTO", "STABLE_PEAK")
    )
    code, findings = examine(fake, nodes)
    assert code == 3 and findings["left by pid 9 (solbench): owned"].do == f"solbench device recover --uuid {UUIDS[0]}"
    (nodes / "kfd").unlink()
    code, findings = examine(fake, nodes)
    assert code == 4 and findings["not there"].where.endswith("kfd")


def test_no_runtime_and_no_card(fake: Cards, nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_: str) -> Path:
        raise doctor.SolbenchError("libamdhip64.so: not found")

    monkeypatch.setattr(native, "locate", nowhere)
    code, findings = examine(fake, nodes)
    assert code == 3 and findings["not found"].where == "libamdhip64.so"
    fake.script_all(cards=[])
    assert examine(fake, nodes)[0] == 4


def test_clocks_that_cannot_be_set_are_a_note(fake: Cards, nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, findings = examine(fake, nodes)
    assert code == 0 and any("unlocked: only root may set STABLE_PEAK" in what for what in findings)
    fake.script(arch="gfx942")
    assert any("no stable level is known for gfx942" in what for what in examine(fake, nodes)[1])
