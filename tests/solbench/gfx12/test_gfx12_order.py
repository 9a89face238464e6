"""What comes before what: vector clocks of groups, records, and turns of waves."""

from __future__ import annotations

from typing import Any

import numpy as np

from solbench.gfx12.clocks import Clocks
from solbench.gfx12.memory import _turns

LOCK, OTHER = (1, 0), (1, 4)


def ordered(clocks: Clocks, before: int, time: int, after: int) -> bool:
    return bool(clocks.ordered(np.array([before]), np.array([time]), np.array([after]))[0])


def test_without_atomics_nothing_is_ordered() -> None:
    assert not ordered(Clocks(3), 0, 1, 1)


def test_an_atomic_orders_what_was_before_it_only() -> None:
    clocks = Clocks(3)
    early = int(clocks.now[0])
    clocks.release([(0, LOCK)])
    late = int(clocks.now[0])
    clocks.acquire([(1, LOCK)])
    assert not ordered(clocks, 0, early, 1)  # it has seen it, but not yet dropped what it holds
    clocks.fence([1])
    assert ordered(clocks, 0, early, 1) and not ordered(clocks, 0, late, 1)
    assert not ordered(clocks, 0, early, 2) and not ordered(clocks, 1, 1, 0)


def test_another_address_orders_nothing() -> None:
    clocks = Clocks(2)
    clocks.release([(0, LOCK)])
    clocks.acquire([(1, OTHER)])
    clocks.fence([1])
    assert not ordered(clocks, 0, 1, 1)


def test_order_is_passed_on() -> None:
    clocks = Clocks(3)
    clocks.release([(0, LOCK)])
    clocks.acquire([(1, LOCK)])
    clocks.fence([1])
    clocks.release([(1, OTHER)])
    clocks.acquire([(2, OTHER)])
    clocks.fence([2])
    assert ordered(clocks, 0, 1, 2) and ordered(clocks, 1, 1, 2)


def test_many_groups_count_as_ordered_after_any_atomic() -> None:
    clocks = Clocks(5000)
    clocks.release([(0, LOCK)])
    clocks.acquire([(1, LOCK)])
    clocks.fence([1])
    assert ordered(clocks, 0, 1, 1) and not ordered(clocks, 2, 1, 1)


def test_turns_visit_each_place_once_and_lanes_in_order() -> None:
    draw: Any = np.random.default_rng(5)
    index = draw.integers(0, 7, 60)
    turns = _turns(index)
    assert sorted(np.concatenate(turns).tolist()) == list(range(60))
    seen: dict[int, int] = {}
    for turn in turns:
        assert len(set(index[turn].tolist())) == len(turn)
        for lane in turn.tolist():
            place = int(index[lane])
            assert seen.get(place, -1) < lane
            seen[place] = lane
