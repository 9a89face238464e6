"""S, its interval and its states; entries; all against closed forms and the vectors of SOL-ExecBench section 4.3."""

import itertools
import math
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solbench.errors import InputError
from solbench.model.score import Score
from solbench.model.trace import Batch, CheckResult, Correctness, SampleSet, Status, Timing, Trace
from solbench.score.entry import aggregate
from solbench.score.statistics import estimate, order_statistics, timing_error
from solbench.score.workload import score_workload, sol_score

DIGEST = "blake3:" + "0" * 64


def samples(*processes: tuple[float, ...], clock: float = 1e-6) -> tuple[SampleSet, ...]:
    return tuple(
        SampleSet(process=i, warmups=3, event_s=events, clock_s=tuple(e + clock for e in events))
        for i, events in enumerate(processes)
    )


def trace(
    candidate: tuple[SampleSet, ...] | None = None,
    baseline: tuple[SampleSet, ...] | None = None,
    status: Status = Status.PASSED,
    **fields: object,
) -> Trace:
    timing = None
    if candidate is not None and baseline is not None:
        timing = Timing(
            method="cpu_clock", flush_bytes=0, stop_reason="count", candidate=candidate, baseline=baseline
        )  # fmt: skip
    checks = (CheckResult(output="y", type="numeric", passed=True, compared=1, mismatched=0),)
    return Trace(
        **{
            "definition": "d",
            "workload": "w",
            "workload_digest": DIGEST,
            "solution": "eager",
            "solution_digest": DIGEST,
            "target": "cpu",
            "status": status,
            "reason": None if status is Status.PASSED else "because",
            "correctness": Correctness(rounds=1, checks=checks) if status is Status.PASSED else None,
            "timing": timing,
            **fields,
        }
    )


def bound(t_sol_s: float, live_bytes: float = 0.0, bandwidth: float = 1e12) -> dict[str, object]:
    return {"t_sol_s": t_sol_s, "memory": {"live_bytes": live_bytes, "bandwidth_bytes_per_s": bandwidth}}


def exact(t_k: float, t_b: float, t_sol: float, floor_s: float = 0.0) -> Score:
    """Score of samples without any spread."""
    return score_workload(trace(samples(*[(t_k,)] * 6), samples(*[(t_b,)] * 6)), bound(t_sol), floor_s)


@pytest.mark.parametrize(("t_k", "s"), [(10, 0.5), (2, 1.0), (6, 8 / 12), (18, 8 / 24)])
def test_vectors_of_the_paper(t_k: float, s: float) -> None:
    assert sol_score(t_k, 10.0, 2.0) == pytest.approx(s, rel=1e-15)
    result = exact(t_k, 10.0, 2.0)
    assert result.state == "scored"
    assert result.s == pytest.approx(s, rel=1e-15)
    assert (result.s_low, result.s_high) == (result.s, result.s)


@pytest.mark.parametrize(
    ("t_k", "t_b", "t_sol", "words"),
    [
        (1.0, 10.0, 2.0, "T_k 1 s is below T_SOL 2 s"),
        (2.0, 2.0, 2.0, "T_b 2 s is not above T_SOL 2 s"),
        (3.0, 2.0, 2.0, "T_b 2 s is not above T_SOL 2 s"),
    ],
)
def test_impossible_times_go_to_audit(t_k: float, t_b: float, t_sol: float, words: str) -> None:
    result = exact(t_k, t_b, t_sol)
    assert (result.state, result.s, result.s_low, result.reason) == ("audit", None, None, words)
    assert result.t_k is not None
    assert result.t_k.point_s == t_k


@given(st.floats(1e-9, 10), st.floats(1e-9, 10), st.floats(1e-9, 10))
def test_s_falls_with_t_k_and_rises_with_t_b(t_k: float, t_b: float, t_sol: float) -> None:
    s = sol_score(t_k, t_b, t_sol)
    assert 0 <= s <= 1
    assert sol_score(t_k * 1.5, t_b, t_sol) <= s <= sol_score(t_k, t_b * 1.5, t_sol)


def test_mean_over_problems_of_the_paper() -> None:
    # Eq. 4: S = (.8, .5, .9), C = (1, 1, 0): mean 1.3 / 3.
    rows = {"a": [scored(0.8)], "b": [scored(0.5)], "c": [failed()]}
    entry = aggregate("e", "cpu", "full", rows)
    assert entry.s == pytest.approx(1.3 / 3, rel=1e-15)
    assert (entry.scored, entry.failed, entry.problem_n, entry.problem_total) == (2, 1, 3, 3)


# -- intervals


@pytest.mark.parametrize(("n", "coverage"), [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375), (6, 0.96875), (8, 0.9921875)])
def test_min_and_max_cover_one_minus_two_to_the_minus_n_plus_one(n: int, coverage: float) -> None:
    assert order_statistics(n) == (1, coverage)


@pytest.mark.parametrize("n", [*range(1, 13), 20, 51])
def test_rank_and_coverage_by_counting(n: int) -> None:
    # The true median lies in [x_(r), x_(n+1-r)] unless fewer than r values fall on one side of it.
    def covered(rank: int) -> float:
        return sum(math.comb(n, below) for below in range(rank, n - rank + 1)) / 2**n

    rank, coverage = order_statistics(n)
    assert coverage == covered(rank)
    assert rank == max([r for r in range(1, n // 2 + 1) if covered(r) >= 0.95], default=1)


def test_the_stated_coverage_is_observed() -> None:
    draw = random.Random(7)
    rank, coverage = order_statistics(9)
    hits = 0
    for _ in range(4000):
        values = sorted(draw.gauss(0, 1) for _ in range(9))
        hits += values[rank - 1] <= 0 <= values[-rank]
    assert hits / 4000 == pytest.approx(coverage, abs=0.02)


def test_point_is_the_median_of_process_medians() -> None:
    result = estimate(samples((1, 2, 9), (4, 4, 4), (3, 3, 3), (8, 8, 8), (5, 6, 7), (7, 7, 1)), "candidate")
    # Medians 2, 4, 3, 8, 6, 7.
    assert (result.point_s, result.low_s, result.high_s) == (5, 2, 8)
    assert (result.coverage, result.processes, result.samples) == (0.96875, 6, 18)


def test_one_process_uses_its_samples() -> None:
    result = estimate(samples((5.0, 1.0, 2.0)), "candidate")
    assert (result.point_s, result.low_s, result.high_s, result.coverage) == (2, 1, 5, 0.75)
    assert (result.processes, result.samples) == (1, 3)


def test_two_processes_claim_no_more_than_two_medians_give() -> None:
    result = estimate(samples((1.0,) * 50, (2.0,) * 50), "candidate")
    assert (result.point_s, result.low_s, result.high_s, result.coverage) == (1.5, 1, 2, 0.5)


@pytest.mark.parametrize("sets", [(), samples((1.0,), ())])
def test_no_samples_no_estimate(sets: tuple[SampleSet, ...]) -> None:
    with pytest.raises(InputError, match="baseline"):
        estimate(sets, "baseline")


@given(st.lists(st.lists(st.floats(1e-6, 1e-3), min_size=1, max_size=5), min_size=1, max_size=8))
def test_the_point_lies_in_its_interval_whatever_the_order(sets: list[list[float]]) -> None:
    result = estimate(samples(*map(tuple, sets)), "candidate")
    assert result.low_s <= result.point_s <= result.high_s
    shuffled = [tuple(reversed(events)) for events in reversed(sets)]
    again = estimate(samples(*shuffled), "candidate")
    assert (again.point_s, again.low_s, again.high_s) == (result.point_s, result.low_s, result.high_s)


def test_the_interval_of_s_comes_from_what_was_measured_together() -> None:
    # Process by process: the slow third one slows both sides, and says nothing against either.
    candidate = samples(*[(t,) for t in (5.9, 6.0, 12.0, 6.0, 6.0, 6.2)])
    baseline = samples(*[(t,) for t in (9.8, 10.0, 22.0, 10.0, 10.0, 10.1)])
    result = score_workload(trace(candidate, baseline), bound(2.0), 0.0)
    assert result.s == pytest.approx(8 / 12)
    assert result.s_low == pytest.approx((10.1 - 2) / (6.2 - 2 + 10.1 - 2))
    assert result.s_high == pytest.approx(2 / 3)


def test_the_interval_of_one_process_pairs_its_rounds() -> None:
    timed = trace(samples((2.0, 4.0, 3.0)), samples((4.0, 8.0, 6.6)))
    result = score_workload(timed, bound(1.0), 0.0)
    assert result.s == pytest.approx(5.6 / (2 + 5.6))
    assert (result.s_low, result.s_high) == pytest.approx((7 / (3 + 7), 3 / (1 + 3)))


def test_the_interval_holds_the_s_of_the_medians() -> None:
    # Nine pairs: the order statistics leave out the extremes, where the S of the two medians may lie.
    candidate = samples(*[(t,) for t in (1.0, 1.0, 1.0, 1.0, 3.0, 9.0, 9.0, 9.0, 9.0)])
    baseline = samples(*[(t,) for t in (2.0, 2.0, 2.0, 2.0, 9.0, 18.0, 18.0, 18.0, 18.0)])
    result = score_workload(trace(candidate, baseline), bound(1e-6), 0.0)
    assert result.s == pytest.approx(9 / 12)
    assert result.s_low == pytest.approx(2 / 3)
    assert result.s_high == result.s


def test_an_end_of_the_interval_below_the_bound_stays_in_range() -> None:
    candidate = samples(*[(t,) for t in (1.9, 2.05, 2.05, 2.05, 2.05, 2.1)])
    result = score_workload(trace(candidate, samples(*[(10.0,)] * 6)), bound(2.0), 0.0)
    assert (result.state, result.s_high) == ("scored", 1.0)
    assert sol_score(3.0, 1.9, 2.0) == 0.0


# -- states


def test_too_narrow_where_headroom_is_under_88_timing_errors() -> None:
    # The half width of T_k / T_b is 1 % of its median, so 8.8 % of headroom are needed.
    times = [(t,) for t in (0.99, 1.0, 1.0, 1.0, 1.0, 1.01)]
    for t_sol, state in ((1 - 0.087, "too_narrow"), (1 - 0.089, "scored")):
        result = score_workload(trace(samples(*times), samples(*[(1.0,)] * 6)), bound(t_sol), 0.0)
        assert result.state == state
        assert (result.s is None) == (state == "too_narrow")
        assert result.s_low is not None and result.s_high is not None and result.s_low < 0.5 < result.s_high


def test_timing_error_is_that_of_the_ratio() -> None:
    # What slows both sides of a pair alike is no error of their ratio.
    assert timing_error([(1.0, 2.0), (3.0, 6.0), (0.5, 1.0)]) == 0
    assert timing_error([(0.9, 2.0), (1.0, 2.0), (1.1, 2.0)]) == pytest.approx(0.1)


def test_unpaired_samples_are_refused() -> None:
    for candidate, baseline in ((((1.0,),), ()), (((1.0,),), ((1.0, 2.0),)), (((1.0,),), ((1.0,), (2.0,)))):
        with pytest.raises(ValueError, match="candidate and baseline are not paired"):
            trace(samples(*candidate), samples(*baseline))


@pytest.mark.parametrize(
    ("status", "state", "s"),
    [
        (Status.INCORRECT_NUMERICAL, "failed", 0.0),
        (Status.RUNTIME_ERROR, "failed", 0.0),
        (Status.COMPILE_ERROR, "failed", 0.0),
        (Status.TIMEOUT, "failed", 0.0),
        (Status.REWARD_HACK, "failed", 0.0),
        (Status.UNSUPPORTED, "not_attempted", None),
        (Status.INVALID_REFERENCE, "not_attempted", None),
    ],
)
def test_a_verdict_that_is_no_pass(status: Status, state: str, s: float | None) -> None:
    result = score_workload(trace(status=status), bound(2.0), 0.0)
    assert (result.state, result.s, result.reason) == (state, s, f"{status}: because")


def test_a_pass_without_times_is_not_timed() -> None:
    assert score_workload(trace(), bound(2.0), 0.0).state == "not_timed"
    assert score_workload(trace((), ()), bound(2.0), 0.0).state == "not_timed"


def test_no_bound_no_score_but_the_times() -> None:
    timed = trace(samples((1.0,)), samples((2.0,)))
    result = score_workload(timed, None, 0.0, no_bound="op foo has no rule")
    assert (result.state, result.reason, result.t_sol_s) == ("no_bound", "op foo has no rule", None)
    assert result.t_k is not None
    assert score_workload(timed, bound(0.0), 0.0).state == "no_bound"


@pytest.mark.parametrize(
    ("candidate", "baseline", "words"),
    [
        (samples((1.0, 0.0)), samples((2.0, 2.0)), "candidate, process 0: a sample is not positive"),
        (samples((1.0,), (1.0,)), samples((2.0,), (-1.0,)), "baseline, process 1: a sample is not positive"),
        (samples((1.0,), ()), samples((2.0,), ()), "candidate, process 1: no samples"),
        (samples((1.0,), clock=-0.5), samples((2.0,)), "event time 1 s exceeds the outer clock's 0.5 s"),
    ],
)
def test_samples_that_cannot_be_times(
    candidate: tuple[SampleSet, ...], baseline: tuple[SampleSet, ...], words: str
) -> None:
    result = score_workload(trace(candidate, baseline), bound(0.1), 0.0)
    assert result.state == "audit"
    assert words in (result.reason or "")
    # Also where there is no bound to compare with.
    assert score_workload(trace(candidate, baseline), None, 0.0).state == "audit"


def test_an_event_as_long_as_the_outer_clock_is_accepted() -> None:
    assert score_workload(trace(samples((1.0,), clock=0.0), samples((2.0,))), bound(0.1), 0.0).state == "scored"


@pytest.mark.parametrize(("clocks", "state"), [((9.0, 4.55), "scored"), ((9.0, 4.65), "audit")])
def test_a_batch_that_the_samples_contradict(clocks: tuple[float, ...], state: str) -> None:
    """Four calls of 1 s, a floor of 0.1 s and 0.5 s that may be missing: one batch of up to 4.6 s is enough."""
    batch = Batch(calls=4, clock_s=clocks, floor_s=0.1, limit_s=0.5)
    candidate = tuple(one.model_copy(update={"batch": batch}) for one in samples((1.0,)))
    result = score_workload(trace(candidate, samples((2.0,))), bound(0.1), 0.0)
    assert result.state == state
    if state == "audit":
        assert result.reason == "candidate, process 0: 4 calls in a row took 4.55 s, the samples say 4 s"
    # A baseline's batches are not judged.
    unjudged = tuple(
        one.model_copy(update={"batch": batch.model_copy(update={"limit_s": None})}) for one in samples((2.0,))
    )
    assert score_workload(trace(samples((1.0,)), unjudged), bound(0.1), 0.0).state == "scored"


def test_implied_bandwidth_above_the_peak() -> None:
    # 1000 bytes in 1 s at a peak of 900 B/s; the bound is consistent with that: 1000 / 900 s.
    result = score_workload(trace(samples((1.0,)), samples((2.0,))), bound(1000 / 900, 1000, 900), 0.0)
    assert result.state == "audit"
    assert result.reason == "T_k 1 s implies 1000 B/s, above the memory's peak 900 B/s"
    result = score_workload(trace(samples((1.2,)), samples((1.1,))), bound(1000 / 900, 1000, 900), 0.0)
    assert result.reason is not None
    assert result.reason.startswith("T_b 1.1 s implies")


@pytest.mark.parametrize(
    ("t_b", "name"),
    [(1.99, "narrow"), (2.0, "good"), (15.0, "good"), (15.1, "loose"), (100.0, "loose"), (101, "vacuous")],
)
def test_headroom_classes(t_b: float, name: str) -> None:
    result = exact(t_b, t_b, 1.0)
    assert (result.headroom, result.headroom_class) == (t_b, name)


def test_launch_bound_is_a_bound_under_the_floor() -> None:
    assert exact(3.0, 4.0, 2.0, floor_s=2.5).launch_bound is True
    assert exact(3.0, 4.0, 2.0, floor_s=2.0).launch_bound is False
    assert score_workload(trace(), None, 1.0).launch_bound is None


# -- entries


def scored(s: float, **fields: object) -> Score:
    return exact(10.0, 10.0, 2.0).model_copy(update={"s": s, "s_low": s - 0.1, "s_high": s + 0.1, **fields})


def failed() -> Score:
    return score_workload(trace(status=Status.TIMEOUT), bound(2.0), 0.0)


def other(state: str, **fields: object) -> Score:
    return failed().model_copy(update={"state": state, "s": None, "s_low": None, "s_high": None, **fields})


def test_every_problem_weighs_the_same() -> None:
    rows = {"many": [scored(0.2), scored(0.4), scored(0.6)], "one": [scored(0.8)]}
    entry = aggregate("e", "cpu", "full", rows)
    assert entry.s == pytest.approx(0.6)
    assert entry.s_low == pytest.approx(0.5)
    assert entry.s_high == pytest.approx(0.7)
    assert [(p.definition, p.s, p.n, p.total) for p in entry.problems] == [
        ("many", pytest.approx(0.4), 3, 3),
        ("one", 0.8, 1, 1),
    ]


def test_what_does_not_count_is_left_out_and_counted() -> None:
    rows = {
        "a": [scored(0.6), other("too_narrow"), other("not_timed")],
        "b": [other("not_attempted"), other("no_bound")],
    }
    entry = aggregate("e", "cpu", "full", rows)
    assert entry.s == pytest.approx(0.6)
    assert (entry.too_narrow, entry.not_timed, entry.no_bound, entry.not_attempted) == (1, 1, 1, 1)
    assert (entry.workloads, entry.problem_n, entry.problem_total) == (5, 1, 2)
    assert entry.problems[1].s is None


def test_a_failed_workload_counts_zero() -> None:
    assert aggregate("e", "cpu", "full", {"a": [scored(0.6), failed()]}).s == pytest.approx(0.3)


def test_a_problem_without_a_solution_counts_zero() -> None:
    rows = {"a": [scored(0.6)], "b": [other("not_attempted")]}
    entry = aggregate("e", "cpu", "full", rows, missing={"b"})
    assert entry.s == pytest.approx(0.3)
    assert (entry.problem_n, entry.problem_total, entry.problems[1].s, entry.problems[1].n) == (1, 2, 0.0, 0)


def test_an_audit_withholds_the_entry_and_its_problem() -> None:
    rows = {"a": [scored(0.6), other("audit")], "b": [scored(0.9)]}
    entry = aggregate("e", "cpu", "full", rows)
    assert (entry.s, entry.s_low, entry.fast_1, entry.geometric_mean_speedup) == (None, None, None, None)
    assert entry.withheld == "1 of 3 workloads under audit"
    assert [problem.s for problem in entry.problems] == [None, 0.9]


def test_withheld_for_another_reason() -> None:
    entry = aggregate(
        "e", "cpu", "full+quick", {"a": [scored(0.6)]}, withheld="its measurement sets differ in protocol"
    )
    assert (entry.s, entry.withheld) == (None, "its measurement sets differ in protocol")


def test_nothing_counts() -> None:
    entry = aggregate("e", "cpu", "full", {"a": [other("not_timed")], "b": [other("not_attempted")]}, missing={"b"})
    assert (entry.s, entry.withheld, entry.problem_n) == (None, None, 0)


def test_second_headline_leaves_launch_bound_workloads_out() -> None:
    rows = {"a": [scored(0.2, launch_bound=True), scored(0.6)], "b": [scored(0.1, launch_bound=True)]}
    entry = aggregate("e", "cpu", "full", rows)
    assert entry.s == pytest.approx(0.25)
    assert entry.s_without_launch_bound == pytest.approx(0.6)


def test_fast_p_and_geometric_mean() -> None:
    rows = {
        "a": [exact(5.0, 10.0, 1.0), exact(10.0, 10.0, 1.0)],  # speed-ups 2 and 1: neither is above its p
        "b": [exact(2.5, 10.0, 1.0)],  # 4
        "c": [failed()],
    }
    entry = aggregate("e", "cpu", "full", rows)
    assert entry.fast_1 == pytest.approx((0.5 + 1 + 0) / 3)
    assert entry.fast_2 == pytest.approx((0 + 1 + 0) / 3)
    # Problems weigh the same: sqrt(sqrt(2 * 1) * 4).
    assert entry.geometric_mean_speedup == pytest.approx(math.sqrt(math.sqrt(2) * 4), rel=1e-15)


@given(st.permutations(range(6)))
def test_an_entry_does_not_depend_on_order(order: list[int]) -> None:
    rows = [scored(0.1 * i + 0.07) for i in range(6)]
    expected = aggregate("e", "cpu", "full", {"p": rows})
    assert aggregate("e", "cpu", "full", {"p": [rows[i] for i in order]}) == expected


def test_counts_add_up() -> None:
    states = ["audit", "too_narrow", "not_timed", "no_bound", "not_attempted"]
    rows = [scored(0.5), failed(), *[other(state) for state in states]]
    entry = aggregate("e", "cpu", "full", {"p": rows})
    assert entry.workloads == 7 == entry.scored + entry.failed + sum(getattr(entry, state) for state in states)


def test_every_score_keeps_its_contract() -> None:
    for t_k, t_b, t_sol in itertools.product((1.0, 2.0, 3.0), repeat=3):
        result = exact(t_k, t_b, t_sol)
        assert Score.load(result.as_dict(), "score") == result


def test_needs_neither_torch_nor_numpy() -> None:
    code = "import sys, solbench.score.release as _, solbench.release.verify\n"
    code += "print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
