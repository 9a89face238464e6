"""Scatter and roofline: positions against closed forms, nothing outside the plot, and what cannot be drawn in words."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from site_fixture import HOSTILE, build_store

from solbench.errors import IntegrityError, SolbenchError
from solbench.model.score import Estimate
from solbench.site import axis
from solbench.site.build import environment
from solbench.site.plot import DENSE, Dot, Line, Plot
from solbench.site.reading import load
from solbench.site.records import Book, BoundResult
from solbench.site.roofline import charged, places, problem_roofline, roofline, roofs, target_roofline
from solbench.site.scatter import entry_scatter, problem_scatter, scatter
from solbench.store import Store

TEMPLATES = Path(__file__).resolve().parents[3] / "site_templates"
LEGEND = [("base", "T_b"), ("a", "T_k")]
# A position is rounded to a tenth.
ROUNDED = 0.11
TAGS = set(
    [
        "figure",
        "div",
        "svg",
        "title",
        "desc",
        "g",
        "line",
        "text",
        "path",
        "rect",
        "circle",
        "figcaption",
        "ul",
        "li",
        "p",
    ]
)
TIMES = st.floats(min_value=1e-12, max_value=1e6)


def drawn(plot: Plot | None) -> Plot:
    assert plot is not None
    return plot


def rendered(plot: Plot) -> str:
    return str(environment(TEMPLATES).get_template("plot.html").module.svg(plot))  # type: ignore[attr-defined]


def height_on(line: Line, x: float) -> float:
    """Where the drawn line is at ``x``."""
    x1, y1, x2, y2 = (float(value) for value in (line.x1, line.y1, line.x2, line.y2))
    return y1 + (y2 - y1) * (x - x1) / (x2 - x1)


def result(
    compute: list[tuple[str, str, float, float]], live: float, bandwidth: float = 1e11, absorbed: float = 0.0
) -> BoundResult:
    """A bound of (engine, mode, operations, rate) terms, priced as the docs say."""
    engines: dict[str, float] = {}
    for engine, _, ops, rate in compute:
        engines[engine] = engines.get(engine, 0.0) + ops / rate
    memory = (live - absorbed) / bandwidth
    fields: dict[str, Any] = {
        "class": "c", "coverage": "complete", "uncounted": [], "t_sol_s": max([memory, *engines.values()]),
        "binds": "memory", "macs": 0, "flops": 0, "terms": [], "tensors": [], "draws": "any draw", "assumptions": [],
        "looseness": [],
        "compute": [
            {"engine": engine, "mode": mode, "ops": ops, "rate_per_s": rate, "seconds": ops / rate}
            for engine, mode, ops, rate in compute
        ],
        "memory": {
            "live_bytes": live, "live_read_bytes": live, "live_write_bytes": 0, "declared_bytes": live,
            "absorbed_write_bytes": absorbed, "bandwidth_bytes_per_s": bandwidth, "seconds": memory,
        },
    }  # fmt: skip
    return BoundResult.load(fields, "bound")


def estimate(point: float, width: float = 0.1) -> Estimate:
    return Estimate(
        point_s=point, low_s=point * (1 - width), high_s=point * (1 + width), coverage=0.96, processes=6, samples=60
    )


def roofline_of(*results: BoundResult, times: dict[int, float] | None = None) -> Plot:
    dots: list[Dot] = []
    for number, found in enumerate(results):
        work = charged(found)
        if work is not None:
            own = [("a", "k", estimate(times[number]))] if times and number in times else []
            dots += places(f"w{number}", work, own)
    return drawn(roofline("r", "t", results, dots, [("sol", "bound"), ("a", "k")]))


def inside(plot: Plot) -> None:
    """Nothing but labels leaves the plot."""
    for mark in plot.marks:
        assert plot.left - ROUNDED <= float(mark.x) <= plot.right + ROUNDED
        for y in (mark.y, mark.low or mark.y, mark.high or mark.y):
            assert plot.top - ROUNDED <= float(y) <= plot.foot + ROUNDED
    for line in plot.lines:
        assert all(plot.left - ROUNDED <= float(x) <= plot.right + ROUNDED for x in (line.x1, line.x2))
        assert all(plot.top - ROUNDED <= float(y) <= plot.foot + ROUNDED for y in (line.y1, line.y2))
        assert 0 <= float(line.label.x) <= plot.width and 0 <= float(line.label.y) <= plot.height
    places_ = [float(x) for x, _ in plot.x_ticks] + [float(x) for x in plot.x_minor]
    assert all(plot.left - ROUNDED <= x <= plot.right + ROUNDED for x in places_)


# Axes


def test_log_axis_is_bounded_by_steps_and_labels_what_fits():
    found = axis.log_axis([1e-6, 3e-4], "s")
    assert (found.low, found.high) == (5e-7, 5e-4)
    assert [label for _, label in found.ticks] == ["1\u00a0µs", "10\u00a0µs", "100\u00a0µs"]
    assert found.place(5e-7) == 0 and found.place(5e-4) == 1 and found.place(0.0) == 0
    assert found.place(1e-5) - found.place(1e-6) == pytest.approx(1 / 3)
    # Seven steps or less are all labelled; of many decades, every n-th is.
    assert len(axis.log_axis([1.2e-6, 4e-6], "s").ticks) == 3
    long = [value for value, _ in axis.log_axis([1e-9, 1e9], "op/s").ticks]
    assert len(long) <= 8 and {round(math.log10(b / a)) for a, b in pairwise(long)} == {3}


def test_linear_axis_has_whole_steps_in_one_unit():
    found = axis.linear_axis([9.5e-4, 1.05e-3], "s")
    assert [label for _, label in found.ticks][:4] == [f"{x}\u00a0ms" for x in ("0.94", "0.96", "0.98", "1.00")]
    assert [label for _, label in axis.linear_axis([0.0, 3.0], "s").ticks] == [
        f"{x}\u00a0s" for x in ("−0.5", "0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5")
    ]
    assert found.place((found.low + found.high) / 2) == pytest.approx(0.5)


@given(st.lists(st.floats(min_value=-1e8, max_value=1e8), min_size=1, max_size=5))
def test_linear_axis_holds_its_values(values):
    found = axis.linear_axis(values, "s")
    assert all(found.holds(value) for value in values)
    assert 3 <= len(found.ticks) <= 20 and len({label for _, label in found.ticks}) == len(found.ticks)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_log_axis_refuses(bad):
    with pytest.raises(SolbenchError, match="has no place"):
        axis.log_axis([1.0, bad], "s")
    if not math.isfinite(bad):
        with pytest.raises(SolbenchError, match="has no place"):
            axis.linear_axis([1.0, bad], "s")


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=9), st.floats(min_value=0, max_value=30))
def test_labels_are_spread_in_order_and_stay_inside(values, gap):
    found = axis.spread(values, gap, 0, 100)
    order = sorted(range(len(values)), key=lambda index: values[index])
    apart = min(gap, 100 / max(len(values) - 1, 1))
    assert all(found[b] - found[a] >= apart - 1e-9 for a, b in pairwise(order))
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)


def test_labels_that_do_not_touch_stay_where_they_are():
    assert axis.spread([70.0, 10.0, 40.0], 20, 0, 100) == [70.0, 10.0, 40.0]
    assert axis.spread([5.0, 6.0], 10, 0, 100) == [5.0, 15.0]


# Scatter


@given(TIMES, TIMES, st.sampled_from([1, 2, 10, 100]))
def test_a_time_of_k_bounds_lies_on_the_line_of_k(one, other, factor):
    dots = [Dot("a", bound, factor * bound, "") for bound in (one, other)]
    plot = drawn(scatter("s", "t", dots, LEGEND))
    line = next(line for line in plot.lines if line.label.words == ("the bound" if factor == 1 else f"{factor}×"))
    for mark in plot.marks:
        # Rounding of x and of the line's ends, times the slope.
        assert abs(float(mark.y) - height_on(line, float(mark.x))) < 0.5
    inside(plot)


def test_equal_decades_are_equal_distances():
    dots = [Dot("a", 10.0**x, 10.0**y, f"{x} {y}") for x, y in ((-6, -5), (-5, -3), (-4, -1))]
    plot = drawn(scatter("s", "t", dots, LEGEND))
    x, y = ([float(value) for value in found] for found in zip(*((m.x, m.y) for m in plot.marks)))
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=2 * ROUNDED) and x[0] < x[1]
    assert y[1] - y[0] == pytest.approx(y[2] - y[1], abs=2 * ROUNDED) and y[0] > y[1]
    # As wide as the ticks say.
    ticks = {label: float(place) for place, label in plot.x_ticks}
    assert x[0] == pytest.approx(ticks["1\u00a0µs"], abs=ROUNDED) and x[2] == pytest.approx(
        ticks["100\u00a0µs"], abs=ROUNDED
    )


@given(st.lists(st.tuples(TIMES, TIMES, st.floats(min_value=0, max_value=1)), min_size=1, max_size=12))
def test_nothing_is_outside_the_scatter(found):
    dots = [Dot("a", x, y, "", y * (1 - width), y * (1 + width)) for x, y, width in found]
    plot = drawn(scatter("s", "t", dots, LEGEND))
    inside(plot)
    # The higher time is drawn higher, the larger bound further right; rounding may make them equal.
    for key, place in ((1, lambda mark: -float(mark.y)), (0, lambda mark: float(mark.x))):
        marks = drawn(scatter("s", "t", [Dot("a", x, y, str(i)) for i, (x, y, _) in enumerate(found)], LEGEND)).marks
        by_title = {int(title): place(mark) for mark in marks for title in mark.title.split("\n")}
        order = sorted(by_title, key=lambda index: found[index][key])
        assert all(by_title[a] <= by_title[b] for a, b in pairwise(order))


def test_the_interval_is_drawn_where_it_is_longer_than_nothing():
    dots = [Dot("a", 1e-6, 1e-4, "wide", 5e-5, 2e-4), Dot("a", 2e-6, 1e-4, "point", 1e-4, 1e-4)]
    wide, point = drawn(scatter("s", "t", dots, LEGEND)).marks
    assert wide.low is not None and wide.high is not None
    # As far down as up, for both are a factor of 2.
    up, down = float(wide.y) - float(wide.high), float(wide.low) - float(wide.y)
    assert up == pytest.approx(down, abs=2 * ROUNDED) and up > 10
    assert point.low is None


def test_what_is_not_positive_is_counted_and_what_is_no_number_refused():
    dots = [Dot("a", 1e-6, 2e-6, "w0"), Dot("a", 0.0, 1e-6, "w1"), Dot("base", 1e-6, -1e-6, "w2")]
    plot = drawn(scatter("s", "t", dots, LEGEND))
    assert len(plot.marks) == 1 and "2 of 3 times not drawn" in plot.description
    assert scatter("s", "t", dots[1:], LEGEND) is None
    assert "not drawn" not in drawn(scatter("s", "t", dots[:1], LEGEND)).description
    for bad in (math.nan, math.inf):
        for broken in (Dot("a", bad, 1.0, "w3"), Dot("a", 1.0, bad, "w3"), Dot("a", 1.0, 1.0, "w3", bad, 2.0)):
            with pytest.raises(SolbenchError, match="w3"):
                scatter("s", "t", [broken], LEGEND)


def test_marks_at_one_place_share_their_titles():
    dots = [Dot("a", 1e-6, 2e-6, "w0"), Dot("a", 1e-6, 2e-6, "w1"), Dot("base", 1e-6, 2e-6, "w2")]
    plot = drawn(scatter("s", "t", dots, LEGEND))
    assert [(mark.series, mark.title) for mark in plot.marks] == [("a", "w0\nw1"), ("base", "w2")]


def many(count: int) -> list[Dot]:
    """Dots of two series at places of their own."""
    return [
        Dot(series, 10 ** (-6 + 5 * i / count), factor * 10 ** (-6 + 5 * i / count), f"w{i}", None, None)
        for i in range(count)
        for series, factor in (("a", 3.0), ("base", 7.0))
    ]


def test_many_dots_are_a_path_a_series_and_small():
    few, crowd = drawn(scatter("s", "t", many(DENSE // 2), LEGEND)), drawn(scatter("s", "t", many(500), LEGEND))
    assert len(few.marks) == DENSE and not few.clouds and "too many" not in few.description
    assert not crowd.marks and "too many for a title" in crowd.description
    # The first series of the legend is drawn last, on top; every dot is one subpath.
    assert [(cloud.series, cloud.shapes.count("M")) for cloud in crowd.clouds] == [("a", 500), ("base", 500)]
    page = rendered(crowd)
    # Budget of a scatter of 500 workloads: 55 bytes a point.
    assert len(page.encode()) < 55_000 and "w499" not in page
    start = re.match(r"M([\d.]+) ([\d.]+)m", crowd.clouds[0].shapes)
    assert start is not None
    same = drawn(scatter("s", "t", [*many(500), Dot("a", 1e-6, 3e-6, "again")], LEGEND))
    assert same.clouds[0].shapes == crowd.clouds[0].shapes


# Roofline


def test_bounds_lie_on_the_slope_and_on_their_roofs():
    memory = result([("matrix", "float16", 1e9, 1e13)], 1e9)
    compute = result([("matrix", "float16", 1e12, 1e13)], 1e9)
    vector = result([("valu", "float32", 1e12, 2e12)], 1e9)
    plot = roofline_of(memory, compute, vector)
    slope, matrix, valu = plot.lines
    assert [line.label.words.replace("\u00a0", " ") for line in plot.lines] == [
        "memory, 100 GB/s", "10.0 Top/s, matrix", "2.00 Top/s, valu",
    ]  # fmt: skip
    marks = {mark.title[:2]: (float(mark.x), float(mark.y)) for mark in plot.marks}
    assert marks["w0"][1] == pytest.approx(height_on(slope, marks["w0"][0]), abs=0.3)
    assert marks["w1"][1] == pytest.approx(float(matrix.y1), abs=ROUNDED) and matrix.y1 == matrix.y2
    assert marks["w2"][1] == pytest.approx(float(valu.y1), abs=ROUNDED) and valu.y1 == valu.y2
    # 1 op/B and 1,000 op/B, as the ticks say; the slope ends where the highest roof begins, at 100 op/B.
    ticks = {label.replace("\u00a0", " "): float(place) for place, label in plot.x_ticks}
    assert marks["w0"][0] == pytest.approx(ticks["1 op/B"], abs=ROUNDED)
    assert marks["w1"][0] == pytest.approx(ticks["1000 op/B"], abs=ROUNDED)
    assert (slope.x2, slope.y2) == (matrix.x1, matrix.y1) and float(slope.x2) == pytest.approx(
        ticks["100 op/B"], abs=0.1
    )
    assert "are not drawn" not in plot.description
    inside(plot)


POWERS = st.floats(min_value=1e3, max_value=1e15)


@given(st.lists(st.tuples(POWERS, POWERS, POWERS), min_size=1, max_size=6), st.floats(min_value=1e9, max_value=1e13))
def test_every_bound_is_the_lower_of_slope_and_roof(found, bandwidth):
    results = [result([("valu", "float32", ops, rate)], live, bandwidth) for ops, rate, live in found]
    plot = roofline_of(*results)
    inside(plot)
    decades = float(plot.foot - plot.top)
    slope = plot.lines[0]
    for mark in plot.marks:
        roof_heights = [float(line.y1) for line in plot.lines[1:]]
        assert float(mark.y) >= min(roof_heights) - 0.2
        on_slope = abs(float(mark.y) - height_on(slope, float(mark.x))) < 0.02 * decades
        assert on_slope or min(abs(float(mark.y) - height) for height in roof_heights) < 0.2


@given(st.lists(st.tuples(POWERS, POWERS, st.floats(min_value=1.0, max_value=1e6)), min_size=1, max_size=6))
def test_no_time_is_above_its_bound(found):
    results = [result([("valu", "float32", ops, 1e12)], live) for ops, live, _ in found]
    times = {number: results[number].t_sol_s * slower for number, (_, _, slower) in enumerate(found)}
    plot = roofline_of(*results, times=times)
    inside(plot)
    tops = {float(mark.x): float(mark.y) for mark in plot.marks if mark.series == "sol"}
    assert all(float(mark.y) >= tops[float(mark.x)] - ROUNDED for mark in plot.marks if mark.series == "a")


def test_the_engine_that_needs_longest_is_counted():
    both = result([("matrix", "float16", 8e9, 4e12), ("valu", "elementwise", 3e9, 1e12)], 1e6)
    work = charged(both)
    assert work is not None and (work.engine, work.operations, work.bytes) == ("valu", 3e9, 1e6)
    assert work.intensity == 3000 and work.operations / work.t_sol_s == pytest.approx(1e12)
    slower = charged(result([("matrix", "float16", 8e9, 1e12), ("valu", "elementwise", 3e9, 1e12)], 1e6))
    assert slower is not None and (slower.engine, slower.operations) == ("matrix", 8e9)


def test_a_bound_of_two_modes_lies_between_their_roofs():
    plot = roofline_of(result([("valu", "float32", 1e12, 1e12), ("valu", "elementwise", 1e12, 4e12)], 1e6))
    (mark,) = plot.marks
    _, high, low = plot.lines
    assert float(high.y1) < float(mark.y) < float(low.y1)
    # 2e12 operations in 1.25 s: the harmonic mean.
    share = math.log(1.6) / math.log(4)
    assert float(mark.y) == pytest.approx(float(low.y1) + share * (float(high.y1) - float(low.y1)), abs=0.2)
    assert "several modes" in plot.description


def test_bytes_are_those_that_memory_is_charged():
    work = charged(result([("valu", "float32", 100.0, 1e12)], 1000.0, absorbed=960.0))
    assert work is not None and (work.bytes, work.intensity) == (40.0, 2.5)
    everything = charged(result([("valu", "float32", 100.0, 1e12)], 1000.0, absorbed=1000.0))
    assert everything is not None and everything.bytes == 1.0


def test_workloads_without_operations_are_counted_in_words():
    copies = [result([], 1e6), result([], 2e6)]
    plot = roofline_of(*copies, result([("valu", "float32", 1e6, 1e12)], 1e6))
    assert len(plot.marks) == 1
    assert "2 of 3 bounds have no operation to count or no byte to move, and are not drawn." in plot.description
    assert roofline("r", "t", copies, [], []) is None
    assert charged(result([("valu", "float32", 1e6, 1e12)], 0.0)) is None


def test_times_that_are_not_positive_are_counted_in_words():
    found = result([("valu", "float32", 1e6, 1e12)], 1e6)
    work = charged(found)
    assert work is not None
    dots = list(places("w0", work, [("a", "k", estimate(0.0)), ("a", "k", estimate(1e-3))]))
    plot = drawn(roofline("r", "t", [found], dots, [("sol", "bound"), ("a", "k")]))
    assert len(plot.marks) == 2 and "1 time not drawn" in plot.description


def test_modes_of_one_rate_share_a_roof():
    found = [
        result([("matrix", "float16", 1.0, 1e13), ("valu", "float32", 1.0, 1e12)], 1.0),
        result([("matrix", "bfloat16", 1.0, 1e13), ("matrix", "float8", 1.0, 2e13)], 1.0),
    ]
    assert [(roof.engine, roof.modes, roof.rate) for roof in roofs(found)] == [
        ("matrix", ("float8",), 2e13),
        ("matrix", ("bfloat16", "float16"), 1e13),
        ("valu", ("float32",), 1e12),
    ]


def test_bounds_of_two_machines_are_refused():
    one, other = (result([("valu", "float32", 1e6, 1e12)], 1e6, bandwidth) for bandwidth in (1e11, 2e11))
    with pytest.raises(IntegrityError, match="2 memory bandwidths"):
        roofline_of(one, other)


def test_labels_of_close_roofs_do_not_overlap():
    rates = (1e12, 1.1e12, 1.2e12, 1.3e12)
    plot = roofline_of(*(result([("valu", f"m{rate}", 1e3, rate)], 1e6) for rate in rates))
    heights = sorted(float(line.label.y) for line in plot.lines if line.leader)
    assert len(heights) == 4 and all(b - a >= 30 for a, b in pairwise(heights))


# Pages


def test_hostile_words_stay_text():
    dots = [Dot("a", 1e-6, 2e-6, HOSTILE)]
    plot = drawn(scatter("s", HOSTILE, dots, [("a", HOSTILE)], HOSTILE))
    found = result([(HOSTILE, HOSTILE, 1e6, 1e12)], 1e6)
    roof = roofline_of(found)
    for page in (rendered(plot), rendered(roof)):
        assert "<script" not in page and "\u202e" not in page and "\x07" not in page and "&lt;script" in page
        assert set(re.findall(r"<([a-z]+)", page)) <= TAGS


def test_the_same_numbers_give_the_same_bytes():
    pages = [rendered(drawn(scatter("s", "t", many(n), LEGEND))) for n in (9, 9, 200, 200)]
    assert pages[0] == pages[1] and pages[2] == pages[3]


def test_marks_are_named_by_title_and_the_plot_by_title_and_description():
    page = rendered(drawn(scatter("s", "the title", [Dot("a", 1e-6, 2e-6, "w0: 2e-06 s")], LEGEND)))
    assert "<title>w0: 2e-06 s</title>" in page and '<title id="s-title">the title</title>' in page
    assert 'aria-labelledby="s-title s-desc"' in page and 'id="s-desc"' in page


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    root = tmp_path_factory.mktemp("plots")
    build_store(root / "store")
    return load(Store(root / "store"))


def test_plots_of_a_release_hold_every_time(book):
    problem = book.problem("AMD_AKA/torch2hip/l1n23_softmax")
    labels = {workload.uuid: workload.uuid for workload in problem.workloads}
    scores = [r.value for w in problem.workloads for r in w.scores.get("cpu", ()) if w.bounds["cpu"].value.result]
    series = {name: letter for name, letter in zip(sorted({score.solution for score in scores}), "abc")}
    plot = drawn(problem_scatter(problem, "cpu", labels, series, "s"))
    titles = [title for mark in plot.marks for title in mark.title.split("\n")]
    times = [time for score in scores for time in (score.t_b, score.t_k) if time is not None]
    assert len(titles) == len(times) > 2
    for time in times:
        assert any(f"({time.point_s!r} s, interval {time.low_s!r} – {time.high_s!r} s)" in title for title in titles)
    roof = drawn(problem_roofline(problem, "cpu", labels, series, "r"))
    bounds = sum(w.bounds["cpu"].value.result is not None for w in problem.workloads)
    assert sum(len(mark.title.split("\n")) for mark in roof.marks) == len(times) + bounds
    assert problem_scatter(problem, "gfx1200", labels, {}, "s") is None
    only_bounds = drawn(problem_roofline(problem, "gfx1200", labels, {}, "r"))
    assert {mark.series for mark in only_bounds.marks} == {"sol"} == {kind for kind, _ in only_bounds.legend}


def test_plots_of_a_target_count_what_they_leave_out(book):
    entry = book.target("cpu").entries[0]
    scored = sum(
        r.value.state == "scored" and r.value.solution == entry.value.name
        for _, w in book.workloads()
        for r in w.scores.get("cpu", ())
    )
    plot = drawn(entry_scatter(book, entry, "a", "s"))
    assert f"{scored} of {entry.value.workloads} workloads have a score and are drawn." in plot.description
    titles = [title for mark in plot.marks if mark.series == "a" for title in mark.title.split("\n")]
    assert len(titles) == scored > 0
    roof = drawn(target_roofline(book, "gfx1200", {}, "r"))
    bounds = [w.bounds["gfx1200"].value.result for _, w in book.workloads() if "gfx1200" in w.bounds]
    assert sum(len(m.title.split("\n")) for m in roof.marks) == sum(b is not None and bool(b.compute) for b in bounds)
