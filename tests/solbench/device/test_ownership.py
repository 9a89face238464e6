"""Owning a card: locks, evidence, restoration; in threads, children and killed processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from device_fakes import ROOT, UUIDS, Cards, start

from solbench.device import clocks, evidence, locks
from solbench.device.card import Card, Driver
from solbench.device.ownership import BORROWED, own, recover
from solbench.errors import InputError, UndecidedError
from solbench.evaluate.freeze import is_dead

# Owns the fake's first card, says so, and does what its arguments say.
OWNER = """
import os, sys, time
from pathlib import Path
from solbench.device import rocm
from solbench.device.ownership import own
driver = rocm.start(); card = driver.cards()[0]; folder = Path(os.environ["GPU_LOCK_DIR"])
with own(driver, card, folder, timeout_s=float(sys.argv[1])) as mine:
    print("owned", mine.clocks.locked, flush=True)
    if len(sys.argv) > 3:
        print("code", mine.run(sys.argv[3:], os.environ), flush=True)
    time.sleep(float(sys.argv[2]))
print("done", flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path) -> Cards:
    return Cards(tmp_path)


@pytest.fixture
def one(fake: Cards, monkeypatch: pytest.MonkeyPatch) -> tuple[Driver, Card]:
    for name in ("GPU_LOCK_DIR", "GPU_LOCK_UUID", BORROWED):
        monkeypatch.delenv(name, raising=False)
    driver, cards = start(fake, monkeypatch)
    return driver, cards[0]


@contextlib.contextmanager
def process(fake: Cards, *arguments: str, code: str = OWNER) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, env=fake.environment, stdout=-1, stderr=-1, text=True, cwd=ROOT) as child:
        try:
            yield child
        finally:
            child.kill()


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def kept(fake: Cards) -> set[str]:
    """Files of the lock folder beside locks and receipts."""
    return {p.name for p in fake.locks.iterdir() if not p.name.endswith((".lock", "receipt.json"))}


def test_clocks_are_stable_inside_and_as_found_after(fake: Cards, one: tuple[Driver, Card]) -> None:
    driver, card = one
    fake.script(level="HIGH")
    with own(driver, card, fake.locks) as mine:
        assert (mine.clocks.found, mine.clocks.set, mine.clocks.locked) == ("HIGH", "STABLE_PEAK", True)
        assert fake.level() == "STABLE_PEAK"
        left = evidence.read(fake.locks, card.uuid)
        assert left is not None and (left.level_found, left.level_set, left.owner.pid) == (
            "HIGH", "STABLE_PEAK", os.getpid(),
        )  # fmt: skip
        assert locks.is_held(fake.locks / f"gpu-{UUIDS[0]}.L1-ownership.lock")
    assert fake.level() == "HIGH" and not kept(fake)
    receipt = json.loads(evidence.receipt_path(fake.locks, card.uuid).read_text())
    assert receipt["restored"] == "HIGH" and receipt["clocks"]["locked"] and receipt["after"]["power_w"] == 141
    assert not locks.is_held(locks.ownership(fake.locks, card.uuid))


def test_a_block_that_fails_is_given_back_too(fake: Cards, one: tuple[Driver, Card]) -> None:
    with pytest.raises(ZeroDivisionError), own(*one, fake.locks):
        _ = 1 / 0
    assert fake.level() == "AUTO" and not kept(fake)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ({"set": {"STABLE_PEAK": "refused"}}, "amdsmi_set_gpu_perf_level: .*Permission Denied"),
        ({"set": {"STABLE_PEAK": "ignored"}}, "STABLE_PEAK was set, but AUTO is read back"),
        ({"set": {"STABLE_PEAK": "STABLE_STD"}}, "STABLE_PEAK was set, but STABLE_STD is read back"),
        ({"level": "MANUAL"}, "level MANUAL could not be restored"),
        ({"arch": "gfx942"}, "no stable level is known for gfx942"),
    ],
)
def test_anything_else_is_labelled_unlocked(fake: Cards, one: tuple[Driver, Card], script: dict, why: str) -> None:
    fake.script(**script)
    before = fake.level()
    driver, _ = one
    with own(driver, driver.cards()[0], fake.locks) as mine:
        assert not mine.clocks.locked
        with pytest.raises(UndecidedError, match=why):
            raise UndecidedError(mine.clocks.why or "")
    assert fake.level() == before and not kept(fake)


@pytest.mark.parametrize("how", ["refused", "ignored", "LOW"])
def test_a_restoration_that_fails_blocks_the_next_owner(
    fake: Cards, one: tuple[Driver, Card], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "_RESTORE_WAITS_S", (0.0, 0.01))
    driver, card = one
    said = f"level AUTO not restored: .*recover --uuid {card.uuid}"
    with pytest.raises(UndecidedError, match=said), own(driver, card, fake.locks):
        fake.script(set={"AUTO": how})
    assert not locks.is_held(locks.ownership(fake.locks, card.uuid)), "blocked by evidence, not by a lock"
    with pytest.raises(UndecidedError, match="left it: level AUTO not restored"), own(driver, card, fake.locks):
        pytest.fail("owned a card that was not restored")
    with pytest.raises(UndecidedError, match="level AUTO not restored"):
        recover(driver, card, fake.locks)
    assert kept(fake), "a recovery that fails keeps the evidence"
    fake.script(set={})
    left = recover(driver, card, fake.locks)
    assert left is not None and left.level_found == "AUTO" and fake.level() == "AUTO" and not kept(fake)
    assert recover(driver, card, fake.locks) is None
    with own(driver, card, fake.locks):
        pass


def test_evidence_that_cannot_be_read_blocks(fake: Cards, one: tuple[Driver, Card]) -> None:
    evidence.evidence_path(fake.locks, one[1].uuid).write_text('{"uuid": 1}')
    with pytest.raises(UndecidedError, match=r"unreadable .* by hand"), own(*one, fake.locks):
        pytest.fail("owned")
    with pytest.raises(UndecidedError, match="unreadable"):
        recover(*one, fake.locks)


def test_a_busy_card_and_an_override_are_refused(
    fake: Cards, one: tuple[Driver, Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script(processes=[[1, "train", 5]])
    fake.script_all(computing=[1])
    with pytest.raises(UndecidedError, match="busy with train"), own(*one, fake.locks):
        pytest.fail("owned")
    fake.script_all(computing=[])
    with own(*one, fake.locks):
        pass
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "12.0.1")
    with pytest.raises(InputError, match="HSA_OVERRIDE_GFX_VERSION"), own(*one, fake.locks):
        pytest.fail("owned")
    assert not kept(fake) and fake.level() == "AUTO"


def test_a_thread_reuses_its_ownership_and_another_waits(fake: Cards, one: tuple[Driver, Card]) -> None:
    driver, card = one
    seen: list[str] = []

    def other(timeout_s: float) -> None:
        try:
            with own(driver, card, fake.locks, timeout_s=timeout_s):
                seen.append("owned")
        except UndecidedError as error:
            seen.append(str(error))

    def run(timeout_s: float) -> threading.Thread:
        thread = threading.Thread(target=other, args=(timeout_s,))
        thread.start()
        return thread

    with own(driver, card, fake.locks) as mine:
        with own(driver, card, fake.locks) as nested:
            assert nested is mine
        assert fake.level() == "STABLE_PEAK", "the end of a nested stage restores nothing"
        run(0).join()
        assert f"owned by pid {os.getpid()}" in seen.pop()
        waiting = run(20)
    waiting.join()
    assert seen == ["owned"] and fake.level() == "AUTO"


def test_two_cards_have_two_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two").mkdir()
    fake = Cards(tmp_path / "two", 2)
    driver, (first, second) = start(fake, monkeypatch)
    with own(driver, first, fake.locks) as one, own(driver, second, fake.locks) as other:
        assert one is not other and fake.level(0) == fake.level(1) == "STABLE_PEAK"
        assert {path.name for path in fake.locks.glob("*.lock")} == {f"gpu-{uuid}.L1-ownership.lock" for uuid in UUIDS}
    assert fake.level(0) == fake.level(1) == "AUTO"


def test_device_work_is_one_at_a_time(fake: Cards, one: tuple[Driver, Card]) -> None:
    driver, card = one
    lock = locks.execution(fake.locks, card.uuid)
    assert lock.name == f"gpu-{UUIDS[0]}.L2-execution.lock"
    with own(driver, card, fake.locks) as mine:
        with mine.execution():
            with mine.execution():
                assert locks.is_held(lock)
            assert locks.is_held(lock), "the inner stage was the same hold"
        assert not locks.is_held(lock)
        handle = locks.attempt(lock)
        assert handle is not None
        with pytest.raises(UndecidedError, match="other work"), mine.execution(timeout_s=0.1):
            pytest.fail("two at once")
        locks.release(handle)
        with mine.execution(timeout_s=0):
            pass


BORROWER = """
import os, sys
from pathlib import Path
from solbench.device import locks, rocm
from solbench.device.ownership import own
driver = rocm.start(); card = driver.cards()[0]; folder = Path(os.environ["GPU_LOCK_DIR"])
with own(driver, card, folder) as mine:
    assert mine.borrowed and mine.clocks.locked, mine.clocks
    with mine.execution(timeout_s=0):
        assert locks.is_held(locks.execution(folder, card.uuid))
    if len(sys.argv) > 1:
        code = mine.run([sys.executable, "-c", sys.argv[1]], os.environ)
        assert code == 0, code
    if os.environ.get("DIE"):
        os.kill(os.getpid(), 9)
"""


def test_a_child_borrows_and_never_restores(fake: Cards, one: tuple[Driver, Card]) -> None:
    """Also a grandchild, through a process that passes the descriptor on to nobody, and one that is killed."""
    driver, card = one
    with own(driver, card, fake.locks) as mine:
        environment = {**fake.environment, "PYTHONPATH": fake.environment["PYTHONPATH"]}
        assert mine.run([sys.executable, "-c", BORROWER], environment) == 0
        assert mine.run([sys.executable, "-c", BORROWER, BORROWER], environment) == 0
        assert mine.run([sys.executable, "-c", BORROWER], {**environment, "DIE": "1"}) == 128 + 9
        with mine.execution():  # the child contends for L2, and loses
            assert mine.run([sys.executable, "-c", BORROWER], environment) == 1
        assert fake.level() == "STABLE_PEAK"
        assert locks.is_held(locks.ownership(fake.locks, card.uuid))
    assert fake.level() == "AUTO" and not kept(fake)


def test_what_is_no_longer_lent_cannot_be_borrowed(fake: Cards, one: tuple[Driver, Card]) -> None:
    driver, card = one
    with own(driver, card, fake.locks) as mine:
        lent, _ = mine.lend()
    assert lent["GPU_LOCK_UUID"] == card.uuid and lent["GPU_LOCK_DIR"] == str(fake.locks)
    said = f"{BORROWED}: {card.uuid} is no longer owned"
    with pytest.raises(UndecidedError, match=said), own(driver, card, fake.locks, environment=lent):
        pytest.fail("borrowed")
    # Evidence without a holder of the lock is a killed owner's.
    evidence.write(
        fake.locks, evidence.Evidence(card.uuid, lent[BORROWED], evidence.this_process(), "AUTO", "STABLE_PEAK")
    )
    with pytest.raises(UndecidedError, match="no longer owned"), own(driver, card, fake.locks, environment=lent):
        pytest.fail("borrowed")


def test_a_forked_child_has_no_part_in_it(fake: Cards, one: tuple[Driver, Card]) -> None:
    driver, card = one
    with own(driver, card, fake.locks) as mine:
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                mine.release()
                try:
                    with own(driver, card, fake.locks):
                        code = 2
                except UndecidedError:
                    code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert fake.level() == "STABLE_PEAK" and locks.is_held(locks.ownership(fake.locks, card.uuid))
    assert fake.level() == "AUTO"


STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "print('started', child.pid, flush=True); time.sleep(60)"
)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_signals_drain_before_unlocking(fake: Cards, number: int, code: int) -> None:
    """A second signal, in the middle of the clean-up, changes nothing."""
    quick = OWNER.replace("from pathlib", "import solbench.device.ownership as o; o.GRACE_S = 0.3\nfrom pathlib")
    with process(fake, "0", "0", sys.executable, "-c", STUBBORN, code=quick) as owner:
        assert line(owner) == "owned True"
        grandchild = int(line(owner).split()[1])
        assert fake.level() == "STABLE_PEAK"
        owner.send_signal(number)
        time.sleep(0.1)
        owner.send_signal(number)
        owner.wait(30)
        assert owner.returncode == code
        assert owner.stdout is not None and "done" not in owner.stdout.read()
    assert fake.level() == "AUTO" and not kept(fake)
    assert is_dead(grandchild)
    assert not locks.is_held(locks.ownership(fake.locks, UUIDS[0]))


def test_what_a_command_leaves_running_ends_with_it(fake: Cards) -> None:
    leaver = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.exit(7)"
    with process(fake, "0", "0", sys.executable, "-c", leaver) as owner:
        lines = [line(owner) for _ in range(4)]
    assert lines[0] == "owned True" and lines[2:] == ["code 7", "done"]
    assert is_dead(int(lines[1]))


def test_an_orphan_keeps_the_card_taken(fake: Cards, one: tuple[Driver, Card]) -> None:
    """A killed owner's child still uses the card: nobody owns or recovers it before that ends."""
    driver, card = one
    sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with process(fake, "0", "0", sys.executable, "-c", sleeper) as owner:
        assert line(owner) == "owned True"
        orphan = int(line(owner))
        owner.kill()
        owner.wait(10)
        with pytest.raises(UndecidedError, match="nothing to recover before it ends"):
            recover(driver, card, fake.locks)
        os.kill(orphan, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while locks.is_held(locks.ownership(fake.locks, card.uuid)) and time.monotonic() < deadline:
            time.sleep(0.01)
    with pytest.raises(UndecidedError, match="was killed"), own(driver, card, fake.locks):
        pytest.fail("owned")
    left = recover(driver, card, fake.locks)
    assert left is not None and fake.level() == "AUTO"


# Owns again and again, and proves each time that it is alone: the file is made exclusively and removed.
CONTENDER = """
import os, sys, time
from pathlib import Path
from solbench.device import rocm
from solbench.device.ownership import own, recover
from solbench.errors import UndecidedError
driver = rocm.start(); card = driver.cards()[0]; folder = Path(os.environ["GPU_LOCK_DIR"])
alone = folder.parent / "alone"
print("s", end="", flush=True)
while True:
    try:
        with own(driver, card, folder, timeout_s=5) as mine:
            assert driver.level(card) == "STABLE_PEAK"
            os.close(os.open(alone, os.O_CREAT | os.O_EXCL))
            print("+", end="", flush=True)
            time.sleep(0.002)
            alone.unlink()
    except UndecidedError as error:
        if "left it" not in str(error):
            continue
        time.sleep(0.01)
"""


def kill_rounds(fake: Cards, driver: Driver, card: Card, rounds: int, seed: int) -> tuple[int, int]:
    """Two contenders, one killed at a random point, recovered, and so on: owners seen, evidence left."""
    draw = random.Random(seed)
    owned = blocked = 0
    alone = fake.locks.parent / "alone"
    for _ in range(rounds):
        with process(fake, code=CONTENDER) as first, process(fake, code=CONTENDER) as second:
            assert first.stdout and second.stdout and first.stderr and second.stderr
            assert first.stdout.read(1) == second.stdout.read(1) == "s"
            time.sleep(draw.uniform(0, 0.2))
            victim, other = draw.sample([first, second], 2)
            victim.kill()
            victim.wait(10)
            assert other.poll() is None, other.stderr.read()
            other.kill()
            other.wait(10)
            owned += len(first.stdout.read() + second.stdout.read())
            assert "FileExistsError" not in first.stderr.read() + second.stderr.read()
        alone.unlink(missing_ok=True)
        left = evidence.read(fake.locks, card.uuid)
        if left is not None:
            blocked += 1
            with pytest.raises(UndecidedError, match="was killed"), own(driver, card, fake.locks):
                pytest.fail("owned")
        else:
            assert fake.level() == "AUTO"
        recover(driver, card, fake.locks)
        assert fake.level() == "AUTO"
        assert kept(fake) <= {f"gpu-{UUIDS[0]}.recovery.json.tmp", f"gpu-{UUIDS[0]}.receipt.json.tmp"}
        with own(driver, card, fake.locks):
            pass
        assert not kept(fake) - {f"gpu-{UUIDS[0]}.receipt.json.tmp"}
    return owned, blocked


@pytest.mark.slow
def test_killed_at_random_points(fake: Cards, one: tuple[Driver, Card]) -> None:
    owned, blocked = kill_rounds(fake, *one, rounds=20, seed=5)
    assert owned >= 20 and blocked >= 5


def test_killed_at_a_random_point(fake: Cards, one: tuple[Driver, Card]) -> None:
    kill_rounds(fake, *one, rounds=1, seed=7)


def test_a_lock_whose_file_was_removed_is_not_held(fake: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who locks a file that is removed meanwhile would own a card that another owns as well."""
    lock = locks.ownership(fake.locks, UUIDS[0])
    real, removed = fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        if not removed:
            lock.unlink()
            removed.append(os.fstat(handle).st_ino)
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    handle = locks.attempt(lock)
    assert handle is not None and os.fstat(handle).st_ino == lock.stat().st_ino
    assert locks.attempt(lock) is None
    locks.release(handle)


def test_the_folder_and_the_card_are_named(fake: Cards, tmp_path: Path) -> None:
    assert locks.directory(None, {"GPU_LOCK_DIR": str(fake.locks)}) == fake.locks
    assert locks.directory(fake.locks, {"GPU_LOCK_DIR": "/elsewhere"}) == fake.locks
    with pytest.raises(InputError, match="GPU_LOCK_DIR: no lock folder named"):
        locks.directory(None, {})
    with pytest.raises(InputError, match="no such folder"):
        locks.directory(tmp_path / "none", {})
    assert locks.uuid(None, {}) is None
    for name in (UUIDS[0], "GPU-8f9a2c10-1111-2222-3333-444455556666", "GPU-0123456789abcdef"):
        assert locks.uuid(None, {"GPU_LOCK_UUID": name}) == name
    for index in ("0", "GPU-0", "card0", "0,1"):
        with pytest.raises(InputError, match="not a UUID"):
            locks.uuid(index, {})
    for name in ("GPU_LOCK_INDEX", "GPU_LOCK_ID", "GPU_LOCK_DEVICES"):
        with pytest.raises(InputError, match=f"{name}: a lock belongs to a card"):
            locks.uuid(UUIDS[0], {name: "0"})
        with pytest.raises(InputError, match=name):
            locks.directory(fake.locks, {name: "0"})
    with pytest.raises(InputError, match="cannot name a file"):
        locks.ownership(fake.locks, "../x")
