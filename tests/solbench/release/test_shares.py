"""Work in forked processes: the same answers with any number of them, whatever becomes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sample_release import rewrite

from solbench.release import shares
from solbench.release.verify import verify


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 5, 64])
def test_answers_are_in_the_order_of_the_items(workers: int, count: int) -> None:
    items = list(range(count))
    assert shares.over(items, lambda item: [item * item, "é" * item], workers) == [[i * i, "é" * i] for i in items]


def test_the_work_is_done_in_other_processes() -> None:
    found = shares.over(range(6), lambda item: os.getpid(), 3)
    assert len(set(found)) == 3
    assert found[0] == os.getpid()


def test_more_than_a_pipe_holds() -> None:
    assert [len(text) for text in shares.over([1 << 20] * 4, lambda size: "x" * size, 3)] == [1 << 20] * 4


def test_the_share_of_a_process_that_dies_is_done_here() -> None:
    here = os.getpid()

    def work(item: int) -> int:
        if os.getpid() != here:
            os._exit(9)
        return item + 1

    assert shares.over(range(5), work, 3) == [1, 2, 3, 4, 5]


def children() -> set[str]:
    """Processes that this one has not waited for; other tests of the same run may have some."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def test_what_is_raised_in_another_process_is_raised_here() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise OSError(5, "gone")
        return item

    before = children()
    with pytest.raises(OSError, match="gone"):
        shares.over(range(5), work, 4)
    assert children() <= before  # nobody is left behind


def test_where_no_process_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd"))
    assert shares.over(range(5), lambda item: item, 4) == [0, 1, 2, 3, 4]
    assert len(os.listdir("/proc/self/fd")) == before


def test_few_items_are_not_worth_a_process() -> None:
    assert shares.workers_for(shares.FEWEST - 1) == 1
    assert 1 <= shares.workers_for(10**6) <= shares.MAX_WORKERS


def test_bounds_are_judged_alike_by_one_process_and_by_several(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lower(value: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        return {**value, "result": {**value["result"], "flops": 7.0}}

    answers = []
    for workers in (1, 3):
        monkeypatch.setattr(shares, "workers_for", lambda items, workers=workers: workers)
        answers.append([verify(folder).as_dict()])
    rewrite(folder, "bounds", "DEMO/unit/add/w1@gfx1200", lower)
    rewrite(folder, "bounds", "DEMO/unit/scale/w2@cpu", lower)
    for workers, found in zip((1, 3), answers, strict=True):
        monkeypatch.setattr(shares, "workers_for", lambda items, workers=workers: workers)
        found.append(verify(folder).as_dict())
    assert answers[0] == answers[1]
    assert [answer["verdict"] for answer in answers[0]] == ["verified", "bad"]
    paths = [error["path"] for error in answers[0][1]["errors"] if error["code"] == "bound-mismatch"]
    assert paths == ["bounds: DEMO/unit/add/w1@gfx1200: flops", "bounds: DEMO/unit/scale/w2@cpu: flops"]
