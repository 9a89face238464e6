"""The sample protocol on a card, over a scripted amdsmi and a compiled library with HIP's names: no GPU is needed.

Device memory is a file that every process maps, an event a clock reading, torch's device the processor.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from device_fakes import Cards, start
from small_problem import write_problem

from solbench.corpus.load import Problem, load_problem, load_solution
from solbench.device.ownership import own
from solbench.errors import InputError, UndecidedError, UnsupportedError
from solbench.evaluate import turns
from solbench.evaluate.evaluation import evaluate
from solbench.evaluate.held import HeldCard, hold
from solbench.evaluate.protocols import protocol
from solbench.evaluate.sampling import run_workload
from solbench.evaluate.session import Session
from solbench.evaluate.turns import Limits, Unshared
from solbench.evaluate.workers import CardAccess
from solbench.model.trace import Status, Trace

SOURCE = Path(__file__).parents[1] / "device" / "fake_runtime.cpp"
TWO_SAMPLES = protocol("quick", samples=2)
HONEST = "def run(x, scale):\n    return x * scale + 1\n"
IN_PLACE = "def run(x, scale, y):\n    y.copy_(x * scale + 1)\n"
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runtime") / "libfake.so"
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-o", path, SOURCE], check=True, timeout=120)
    return path


@pytest.fixture(scope="module")
def module_patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Cards:
    return Cards(tmp_path_factory.mktemp("cards"))


@pytest.fixture(scope="module")
def session(
    library: Path, cards: Cards, module_patch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    driver, (card,) = start(cards, module_patch)
    # A flush of this machine's memory beside other tests has no steady time.
    module_patch.setattr("solbench.evaluate.session.measure_flush", lambda referee, limits: 60.0)
    limits = Limits(load_s=10.0, first_call_s=10.0, call_s=10.0)
    with own(driver, card, cards.locks) as mine, mine.execution():
        access = CardAccess((str(library.parent),), ())
        held = HeldCard(driver, card, mine, access, device="cpu", library=str(library))
        with Session(limits, cache=tmp_path_factory.mktemp("build"), target="gfx1200", card=held) as session:
            yield session


def solve(problem: Problem, session: Session, source: str, folder: Path, **spec: object) -> list[Trace]:
    path = folder / "s.py"
    path.write_text(source)
    solution = load_solution(path, problem.definition)
    solution = solution.model_copy(update={"spec": solution.spec.model_copy(update=spec)})
    return list(evaluate(problem, solution, target="gfx1200", protocol=TWO_SAMPLES, session=session))


@pytest.mark.parametrize(("source", "in_place"), [(HONEST, False), (IN_PLACE, True)])
def test_a_right_solution(
    problem: Problem, session: Session, tmp_path: Path, library: Path, source: str, in_place: bool
) -> None:
    traces = solve(problem, session, source, tmp_path, destination_passing_style=in_place)
    assert [trace.status for trace in traces] == [Status.PASSED] * 2, [trace.reason for trace in traces]
    for trace in traces:
        assert trace.target == "gfx1200"
        assert any("AMD Radeon RX 9060 XT" in label for label in trace.labels)
        assert "clocks: locked at STABLE_PEAK" in trace.labels
        if trace.timing is not None:
            # Twice level 2 and 3 by the driver's word: 4 + 32 MiB.
            assert (trace.timing.method, trace.timing.flush_bytes) == ("hip_event", 72 << 20)
    assert len(list(library.parent.glob("memory-*"))) == 1, "what was shared before is freed"


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ("def run(x, scale):\n    return x * scale\n", Status.INCORRECT_NUMERICAL, "y:"),
        ("def run(x, scale):\n    x.zero_()\n    return x * scale + 1\n", Status.REWARD_HACK, "input x was changed"),
        ("def run(x, scale):\n    return (x * scale + 1).double()\n", Status.INCORRECT_DTYPE, "float64"),
        ("def run(x, scale):\n    raise ValueError('no')\n", Status.RUNTIME_ERROR, "no"),
        (
            "from solbench.evaluate.compute import Gpu, Times\n"
            "Gpu.stop = lambda self: Times(10**9, 10**3, 10**3)\n" + HONEST,
            Status.REWARD_HACK, "clock witness",
        ),
    ],
)  # fmt: skip
def test_a_wrong_solution(
    problem: Problem, session: Session, tmp_path: Path, source: str, status: Status, reason: str
) -> None:
    (trace, _) = solve(problem, session, source, tmp_path)
    assert trace.status is status and reason in (trace.reason or ""), (trace.status, trace.reason, trace.log)
    assert trace.timing is None


def test_work_that_the_events_do_not_cover_is_no_time(problem: Problem, session: Session, tmp_path: Path) -> None:
    """As of a stream that is never joined: a later event shows it."""
    source = (
        "from dataclasses import replace\nfrom solbench.evaluate.compute import Gpu\n"
        "stop = Gpu.stop\nGpu.stop = lambda self: replace(stop(self), left_ns=10**6)\n" + HONEST
    )
    for trace in solve(problem, session, source, tmp_path):
        assert trace.status is Status.PASSED and trace.timing is None
        assert "the card worked on after the call" in (trace.reason or ""), trace.reason


def test_a_card_that_is_busy_between_calls(problem: Problem, session: Session, tmp_path: Path) -> None:
    session.flush_limit_s()
    session._flush_limit_s, kept = 0.0, session._flush_limit_s
    try:
        (trace, _) = solve(problem, session, HONEST, tmp_path)
    finally:
        session._flush_limit_s = kept
    assert trace.status is Status.REWARD_HACK and "flushes found the card busy" in (trace.reason or "")


def test_a_card_that_stays_busy_after_the_call(problem: Problem, session: Session, tmp_path: Path) -> None:
    """As with a runtime that was made to wait for nothing: "done" comes, and the card goes on."""
    session.floor(native=False)
    ask = session.referee().ask

    def busy(message: dict[str, Any], *rest: Any) -> dict[str, Any]:
        return {"ok": True, "idle": False} if message["op"] == "probe" else ask(message, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session.referee(), "ask", busy)
        (trace, _) = solve(problem, session, HONEST, tmp_path)
    assert trace.status is Status.REWARD_HACK, "whoever had the turn, it is the candidate's doing"
    assert "still busy long after the call" in (trace.reason or "")


def test_languages_of_a_card(problem: Problem, session: Session, tmp_path: Path) -> None:
    path = tmp_path / "s.cpp"
    path.write_text("x")
    solution = load_solution(path, problem.definition)
    traces = list(evaluate(problem, solution, target="gfx1200", protocol=TWO_SAMPLES, session=session))
    assert {trace.status for trace in traces} == {Status.UNSUPPORTED}
    assert traces[0].reason == "language: cpp does not run on the gfx1200 target"


def test_more_memory_than_the_card_has(session: Session, tmp_path: Path) -> None:
    text = (tmp_path / "P").as_posix()
    folder = write_problem(Path(text) / "tests" / "scale_shift")
    workloads = (folder / "workloads.yaml").read_text().replace("N: 5000", "N: 200000000")
    (folder / "workloads.yaml").write_text(workloads)
    traces = solve(load_problem(folder), session, HONEST, tmp_path)
    # 0.8 GB a tensor; the scripted card has 3 GiB left.
    assert [trace.status for trace in traces] == [Status.PASSED, Status.UNSUPPORTED]
    assert "memory: needs about" in (traces[1].reason or "")


def test_a_new_referee_shares_anew(problem: Problem, session: Session, tmp_path: Path) -> None:
    session.replace_processes()
    traces = solve(problem, session, HONEST, tmp_path)
    assert [trace.status for trace in traces] == [Status.PASSED] * 2, [trace.reason for trace in traces]


def test_memory_on_the_host(problem: Problem, session: Session, tmp_path: Path) -> None:
    """The declared other transport: copied to the card before the call, and back after it."""
    with Session(session.limits, tmp_path / "build", target="gfx1200", card=session.card, transport="host") as other:
        for source, in_place in ((HONEST, False), (IN_PLACE, True)):
            traces = solve(problem, other, source, tmp_path, destination_passing_style=in_place)
            assert [trace.status for trace in traces] == [Status.PASSED] * 2, [trace.reason for trace in traces]
            assert any(label.startswith("shared memory: copied from host memory") for label in traces[0].labels)
        for source, status in (
            ("def run(x, scale):\n    return x * scale\n", Status.INCORRECT_NUMERICAL),
            ("def run(x, scale):\n    x.zero_()\n    return x * scale + 1\n", Status.REWARD_HACK),
        ):
            assert solve(problem, other, source, tmp_path)[0].status is status


class TestHold:
    """Which card a target gets, and what is refused."""

    def test_no_card(self, cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
        start(cards, monkeypatch)
        cards.script_all(no_driver=True)
        try:
            with pytest.raises(UnsupportedError, match="--target gfx1200: no card here"), hold("gfx1200"):
                pytest.fail("held")
        finally:
            cards.script_all(no_driver=False)

    def test_an_override_comes_first(self) -> None:
        environment = {"HSA_OVERRIDE_GFX_VERSION": "12.0.0"}
        with pytest.raises(InputError, match="unset it to measure"), hold("gfx1200", environment=environment):
            pytest.fail("held")

    def test_another_architecture(self, cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
        start(cards, monkeypatch)
        with pytest.raises(UnsupportedError, match="the card here is gfx1200"), hold("gfx942"):
            pytest.fail("held")

    def test_no_device_node(self, cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
        start(cards, monkeypatch)
        with pytest.raises(UndecidedError, match="/dev/kfd: is not there"), hold("gfx1200"):
            pytest.fail("held")

    def test_no_lock_folder(self, cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
        driver, _ = start(cards, monkeypatch)
        monkeypatch.setattr(type(driver), "device_files", lambda self, card: ("/dev/null",))
        monkeypatch.delenv("GPU_LOCK_DIR", raising=False)
        with pytest.raises(InputError, match="no lock folder named"), hold("gfx1200"):
            pytest.fail("held")


def test_the_session_is_for_its_target(problem: Problem, session: Session, tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(HONEST)
    with pytest.raises(UnsupportedError, match="this session is for gfx1200"):
        list(evaluate(problem, load_solution(path, problem.definition), session=session))


def test_memory_that_is_refused_once(
    problem: Problem, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA refuses to open shared memory now and then; another process gets it."""
    calls = []

    def refused_once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise Unshared(Status.RUNTIME_ERROR, "device memory is not shared with this process")
        return run_workload(*arguments)

    monkeypatch.setattr("solbench.evaluate.evaluation.run_workload", refused_once)
    assert [trace.status for trace in solve(problem, session, HONEST, tmp_path)] == [Status.PASSED] * 2
    assert len(calls) == 3


def test_a_refusal_that_no_trace_can_hold() -> None:
    """Half a character, as JSON can name it."""
    assert turns._fault(["unshared", "no \ud800"], opening=True).reason == "no ?"


def test_memory_that_is_always_refused(problem: Problem, session: Session, library: Path, tmp_path: Path) -> None:
    (library.parent / "refuse").touch()
    try:
        traces = solve(problem, session, HONEST, tmp_path)
    finally:
        (library.parent / "refuse").unlink()
    assert [trace.status for trace in traces] == [Status.RUNTIME_ERROR] * 2
    for trace in traces:
        assert trace.reason is not None and "(201): device memory is not shared with this process" in trace.reason
        assert trace.reason.endswith("; in new processes as well")


def test_a_candidate_cannot_ask_for_another_try() -> None:
    """What a worker says once it has made a call is no reason for new processes."""
    opening, later = (turns._fault(["unshared", "once more"], opening=opening) for opening in (True, False))
    assert isinstance(opening, Unshared) and opening.status is Status.RUNTIME_ERROR
    assert not isinstance(later, Unshared) and later.status is Status.REWARD_HACK


TRITON = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_shift(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * scale + 1, mask=at < n)


@triton.jit
def product(a, b, c, n):
    at = tl.arange(0, 128)
    sums = tl.zeros((128, 128), dtype=tl.float32)
    for k in range(n):
        left = tl.load(a + at[:, None] * 128 + k * 64 + tl.arange(0, 64)[None, :])
        sums = tl.dot(left, tl.load(b + (k * 64 + tl.arange(0, 64)[:, None]) * 128 + at[None, :]), sums)
    tl.store(c + at[:, None] * 128 + at[None, :], sums)


def run(x, scale):
    y = torch.empty_like(x)
    scale_shift[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), scale, BLOCK=1024)
    if x.numel() == 5000:
        half = torch.zeros(128, 128, dtype=torch.float16, device=x.device)
        product[(1,)](half, half, half, 2, num_warps=8, num_stages=4)
    return y
"""


def test_code_that_would_not_launch_is_not_launched(problem: Problem, session: Session, tmp_path: Path) -> None:
    """The smaller workload is let through to the card, where Triton finds none to run on; the larger one is not."""
    larger, small = solve(problem, session, TRITON, tmp_path)
    assert (larger.workload, small.workload) == ("larger", "small")
    assert larger.status is Status.RUNTIME_ERROR and larger.reason is not None
    assert larger.reason.startswith("product: would not launch: LDS of "), larger.reason
    assert larger.reason.endswith(" bytes a work-group, over the limit of 65536: the launch will fail")
    assert "would not launch" not in str(small.reason) and "driver" in str(small.reason), (small.status, small.reason)
