"""What the scores of an entry add up to."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, get_args

from solbench.model.score import ENTRY_SCHEMA, Entry, ProblemScore, Score, State, Trust

# The states whose S enters a mean.
COUNTED: Final = ("scored", "failed")


def aggregate(
    name: str,
    target: str,
    protocol: str,
    problems: Mapping[str, Sequence[Score]],
    missing: Collection[str] = (),
    withheld: str | None = None,
) -> Entry:
    """A leaderboard row from the scores of all scored problems (problem key -> one score a workload).

    Mean over the workloads of a problem that count (scored, failed), then equal-weight mean over problems. A problem of
    which nothing counts is left out of the mean, one in ``missing`` (the entry has no solution for it) counts 0. An
    audit withholds every aggregate, and so does ``withheld``. ``fast_p``: share that is faster than p times the
    baseline, means taken the same way; geometric mean speed-up over the scored workloads only, problems equal-weight.
    """
    rows = [score for key in sorted(problems) for score in problems[key]]
    count = {state: sum(score.state == state for score in rows) for state in get_args(State)}
    reasons = [withheld] if withheld else []
    if count["audit"]:
        reasons.append(f"{count['audit']} of {len(rows)} workloads under audit")

    def mean(
        value: Callable[[Score], float | None], keep: Callable[[Score], bool] = lambda score: True
    ) -> float | None:
        return None if reasons else _mean_over_problems(problems, missing, value, keep)

    return Entry(
        schema=ENTRY_SCHEMA,
        name=name,
        target=target,
        protocol=protocol,
        s=mean(lambda score: score.s),
        s_low=mean(lambda score: score.s_low),
        s_high=mean(lambda score: score.s_high),
        s_without_launch_bound=mean(lambda score: score.s, lambda score: not score.launch_bound),
        withheld="; ".join(reasons) or None,
        **count,
        workloads=len(rows),
        problems=tuple(_problem_score(key, problems[key], key in missing) for key in sorted(problems)),
        problem_n=sum(any(score.state in COUNTED for score in scores) for scores in problems.values()),
        problem_total=len(problems),
        geometric_mean_speedup=None if reasons else _geometric_mean_speedup(problems),
        fast_1=mean(lambda score: float(_speedup(score) > 1)),
        fast_2=mean(lambda score: float(_speedup(score) > 2)),
        trust={label: n for label in get_args(Trust) if (n := sum(score.trust == label for score in rows))},
    )


def _speedup(score: Score) -> float:
    """T_b / T_k of a scored workload; 0 for one that failed."""
    if score.state != "scored" or score.t_k is None or score.t_b is None:
        return 0.0
    return score.t_b.point_s / score.t_k.point_s


def _mean_over_problems(
    problems: Mapping[str, Sequence[Score]],
    missing: Collection[str],
    value: Callable[[Score], float | None],
    keep: Callable[[Score], bool],
) -> float | None:
    means: list[float] = []
    counted = 0
    for key in sorted(problems):
        kept = [score for score in problems[key] if keep(score)]
        values = [value(score) or 0.0 for score in kept if score.state in COUNTED]
        if values:
            counted += 1
            means.append(math.fsum(values) / len(values))
        elif key in missing and kept:
            means.append(0.0)
    return math.fsum(means) / len(means) if counted else None


def _problem_score(key: str, scores: Sequence[Score], missing: bool) -> ProblemScore:
    values = [score.s or 0.0 for score in scores if score.state in COUNTED]
    s: float | None = 0.0 if missing else None
    if values and not any(score.state == "audit" for score in scores):
        s = math.fsum(values) / len(values)
    return ProblemScore(definition=key, s=s, n=len(values), total=len(scores))


def _geometric_mean_speedup(problems: Mapping[str, Sequence[Score]]) -> float | None:
    with decimal.localcontext(decimal.Context(prec=40)):
        logarithms = []
        for key in sorted(problems):
            ratios = [decimal.Decimal(_speedup(score)).ln() for score in problems[key] if score.state == "scored"]
            if ratios:
                logarithms.append(sum(ratios, decimal.Decimal(0)) / len(ratios))
        if not logarithms:
            return None
        return float((sum(logarithms, decimal.Decimal(0)) / len(logarithms)).exp())
