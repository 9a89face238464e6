"""The sample plot: every sample where it belongs, both witnesses of every process, and few bytes."""

from __future__ import annotations

import math
import random
import re
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from site_fixture import HOSTILE

from solbench.errors import SolbenchError
from solbench.model.trace import SampleSet, Timing
from solbench.site import environment
from solbench.site.samples import Lane, Strip, strip

TEMPLATES = Path(__file__).resolve().parents[3] / "site_templates"
ROUNDED = 0.06
Times = Sequence[Sequence[float]]


def side(events: Times, later: float) -> tuple[SampleSet, ...]:
    return tuple(
        SampleSet(process=i, warmups=1, event_s=tuple(found), clock_s=tuple(value + later for value in found))
        for i, found in enumerate(events)
    )


def timing(candidate: Times, baseline: Times, later: float = 0.0) -> Timing:
    return Timing(
        method="cpu_clock", flush_bytes=0, stop_reason="fixed", candidate=side(candidate, later),
        baseline=side(baseline, later),
    )  # fmt: skip


def drawn(found: Timing, t_sol_s: float | None = None) -> Strip:
    plot = strip("s", "t", found, "mine", "a", t_sol_s)
    assert plot is not None
    return plot


def rendered(plot: Strip) -> str:
    return str(environment(TEMPLATES).get_template("plot.html").module.strip(plot))  # type: ignore[attr-defined]


def lanes(plot: Strip) -> list[Lane]:
    return [lane for side in plot.sides for process in side.processes for lane in process.lanes]


def blocks(path: str) -> list[tuple[float, float]]:
    """(from, to) of every stroke of a path of horizontal lines."""
    found, x = [], 0.0
    for command, numbers in re.findall(r"([Mmh])([^Mmh]*)", path):
        first = float(numbers.split()[0])
        if command == "h":
            found.append((x, x + first))
        x = first if command == "M" else x + first
    return found


def covered(path: str, x: float) -> bool:
    return any(start - ROUNDED <= x <= end + ROUNDED for start, end in blocks(path))


def test_samples_stand_where_the_ticks_say():
    plot = drawn(timing([[1e-3, 1.5e-3, 2e-3]], [[3e-3, 4e-3, 3e-3]]))
    ticks = {label: float(x) for x, label in plot.ticks}
    one, two = ticks["1.0\u00a0ms"], ticks["2.0\u00a0ms"]
    assert plot.axis == "time"
    candidate, clock, baseline, _ = lanes(plot)
    centres = [(start + end) / 2 for start, end in blocks(candidate.ticks)]
    assert centres == pytest.approx([one, (one + two) / 2, two], abs=ROUNDED)
    assert clock.ticks.partition("h")[2] == candidate.ticks.partition("h")[2]
    # The two samples of 3 ms are one tick.
    assert [(s + e) / 2 for s, e in blocks(baseline.ticks)] == pytest.approx(
        [one + 2 * (two - one), one + 3 * (two - one)], abs=0.1
    )
    assert all(end - start == pytest.approx(1) for start, end in blocks(candidate.ticks + baseline.ticks))
    assert float(candidate.median) == pytest.approx((one + two) / 2, abs=ROUNDED)


def test_more_than_a_decade_is_a_log_axis():
    plot = drawn(timing([[1e-6, 1e-5]], [[1e-4, 1e-3]]))
    assert plot.axis == "time, log axis"
    places = [(s + e) / 2 for lane in lanes(plot) if lane.witness == "event" for s, e in blocks(lane.ticks)]
    steps = [b - a for a, b in pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 3, abs=2 * ROUNDED) and steps[0] > 50


VALUES = st.lists(st.floats(min_value=1e-9, max_value=1e3), min_size=1, max_size=30)


@given(VALUES, VALUES, st.floats(min_value=0, max_value=1))
def test_every_sample_is_covered_and_nothing_else(candidate, baseline, later):
    count = min(len(candidate), len(baseline))
    found = timing([candidate[:count]], [baseline[:count]], later)
    plot = drawn(found)
    every = [value for s in (*found.candidate, *found.baseline) for value in (*s.event_s, *s.clock_s)]
    strokes = [block for lane in lanes(plot) for block in blocks(lane.ticks)]
    ends = min(start for start, _ in strokes) + 0.5, max(end for _, end in strokes) - 0.5
    assert plot.left <= ends[0] <= ends[1] <= plot.right
    # The rule of the axis, from its first and last sample.
    scale = math.log10 if "log" in plot.axis else float
    low, high = scale(min(every)), scale(max(every))

    def place(value: float) -> float:
        return ends[0] if high == low else ends[0] + (ends[1] - ends[0]) * (scale(value) - low) / (high - low)

    sets = [s for pair in (found.candidate, found.baseline) for s in pair]
    expected = [times for s in sets for times in (s.event_s, s.clock_s)]
    for lane, times in zip(lanes(plot), expected, strict=True):
        assert all(covered(lane.ticks, place(value)) for value in times)
        for start, end in blocks(lane.ticks):
            assert any(abs(place(value) - 0.5 - start) < 0.2 for value in times)
            assert any(abs(place(value) + 0.5 - end) < 0.2 for value in times)
            assert end - start <= 1.11 * len(times)


def test_each_process_has_both_witnesses_and_its_median():
    events = [[1e-3, 1.2e-3, 9e-4, 1.1e-3], [2e-3, 1.9e-3, 2.2e-3, 2.1e-3]]
    plot = drawn(timing(events, [[value * 2 for value in process] for process in events], later=1e-5))
    assert [side.label for side in plot.sides] == ["candidate: mine", "baseline"]
    assert [process.label for side in plot.sides for process in side.processes] == ["process 0", "process 1"] * 2
    assert [lane.witness for lane in lanes(plot)] == ["event", "clock"] * 4
    assert [lane.series for lane in lanes(plot)] == ["a"] * 4 + ["base"] * 4
    medians = [statistics.median(process) for process in events]
    assert f"({medians[0]!r} s) of 4 samples, 0.0009 – 0.0012 s" in lanes(plot)[0].title
    for event, clock in zip(lanes(plot)[::2], lanes(plot)[1::2], strict=True):
        assert float(event.median) < float(clock.median)
    # No lane stands on another.
    heights = [(float(lane.top), float(lane.bottom)) for lane in lanes(plot)]
    assert all(a[1] <= b[0] for a, b in pairwise(heights)) and heights[-1][1] < plot.foot
    assert "8 samples of each side: 2 processes with 4," in plot.description


def test_the_bound_is_a_line_where_it_is_near_and_words_where_not():
    found = timing([[1e-3, 1.1e-3]], [[2e-3, 2e-3]])
    near, far, none = drawn(found, 9e-4), drawn(found, 1e-6), drawn(found)
    left = [min(start for start, _ in blocks(lane.ticks)) for lane in lanes(near)]
    assert near.left <= float(near.bound) < min(left) and "is the bound" in near.description
    assert far.bound == "" and "T_SOL, 1.00 µs, is off the axis" in far.description.replace("\u00a0", " ")
    # It does not squeeze the samples.
    assert far.ticks == none.ticks and "There is no bound" in none.description
    assert 'class="guide bound"' in rendered(near) and 'class="guide bound"' not in rendered(far)
    assert "(0.0009 s)" in rendered(near)


def test_samples_that_are_not_positive_are_counted_and_no_number_is_refused():
    plot = drawn(timing([[1e-3, -1e-3]], [[2e-3, 0.0]]))
    assert "4 times not above 0 not drawn" in plot.description
    assert [len(blocks(lane.ticks)) for lane in lanes(plot)] == [1, 1, 1, 1]
    assert strip("s", "t", timing([[0.0]], [[-1.0]]), "mine") is None
    assert strip("s", "t", timing([[]], [[]]), "mine") is None
    broken = side([[1e-3]], 0.0)[0].model_copy(update={"event_s": (math.nan,)})
    with pytest.raises(SolbenchError, match="not a finite number"):
        strip("s", "t", timing([[1e-3]], [[1e-3]]).model_copy(update={"candidate": (broken,)}), "mine")


def test_processes_may_differ_in_samples():
    plot = drawn(timing([[1e-3] * 3, [1e-3]], [[2e-3] * 3, [2e-3]]))
    assert "4 samples of each side: 2 processes with 1 to 3," in plot.description


def large(seed: int) -> Timing:
    draw = random.Random(seed)
    sides = [[[m * draw.lognormvariate(0, 0.3) for _ in range(500)] for _ in range(6)] for m in (4e-5, 9e-5)]
    return timing(sides[0], sides[1], later=2e-6)


def test_a_large_trace_is_small():
    # Budget of 12,000 samples and their clocks: three bytes each.
    page = rendered(drawn(large(1), 3e-5))
    assert len(page.encode()) < 36_000


def test_the_same_samples_give_the_same_bytes():
    assert rendered(drawn(large(2))) == rendered(drawn(large(2))) != rendered(drawn(large(3)))


def test_hostile_words_stay_text():
    plot = strip("s", HOSTILE, timing([[1e-3]], [[2e-3]]), HOSTILE)
    assert plot is not None
    page = rendered(plot)
    assert "<script" not in page and "\u202e" not in page and "\x07" not in page and "&lt;script" in page
