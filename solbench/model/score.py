"""Score S of one solution on one workload, and what an entry's scores add up to."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from solbench.model.record import Descriptor, Value

SCHEMA: Final = "solbench.score.v1"
ENTRY_SCHEMA: Final = "solbench.entry.v1"

State = Literal["scored", "failed", "audit", "too_narrow", "not_timed", "no_bound", "not_attempted"]
HeadroomClass = Literal["narrow", "good", "loose", "vacuous"]
Trust = Literal["self-reported", "imported", "reproduced on another card", "not reproduced on another card"]


class Estimate(Value):
    """Median over process medians with its order-statistic interval and that interval's coverage."""

    point_s: float
    low_s: float
    high_s: float
    coverage: float = Field(ge=0, le=1)
    processes: int = Field(ge=1)
    samples: int = Field(ge=1)


class Score(Value):
    """``s`` is null unless ``state`` is scored (then in (0, 1]) or failed (then 0).

    ``s_low`` and ``s_high`` stand beside ``too_narrow`` as well: an interval holds whatever its width. ``trust``: whose
    word the trace is, and what another card said; null where nothing was attempted. ``reproductions``: records of the
    same workload and solution in sets that were taken to reproduce.
    """

    schema_: Literal["solbench.score.v1"] = Field(SCHEMA, alias="schema")
    definition: str
    workload: str
    solution: str
    target: str
    state: State
    reason: str | None = None
    t_k: Estimate | None = None
    t_b: Estimate | None = None
    t_sol_s: float | None = None
    s: float | None = None
    s_low: float | None = None
    s_high: float | None = None
    headroom: float | None = None
    headroom_class: HeadroomClass | None = None
    launch_bound: bool | None = None
    trace: Descriptor | None = None
    bound: Descriptor | None = None
    measurement_set: Descriptor | None = None
    trust: Trust | None = None
    reproductions: tuple[Descriptor, ...] = ()


class ProblemScore(Value):
    """Mean over the workloads of one problem that count; ``n`` of ``total``. ``definition`` is the problem's key.

    ``s`` is 0 for a problem that the entry has no solution for, and null where nothing counts or an audit is open.
    """

    definition: str
    s: float | None
    n: int
    total: int


class Entry(Value):
    """A leaderboard row: solutions of one name on one target. ``s`` is null while withheld or where nothing counts.

    ``workloads``, ``problem_total``: all of the release with role ``scored``; the seven counts before add up to
    ``workloads``. ``problem_n``: problems of which a workload counts. ``trust``: how many of the workloads that were
    attempted have each label.
    """

    schema_: Literal["solbench.entry.v1"] = Field(ENTRY_SCHEMA, alias="schema")
    name: str
    target: str
    protocol: str
    s: float | None
    s_low: float | None
    s_high: float | None
    s_without_launch_bound: float | None
    withheld: str | None
    scored: int
    failed: int
    audit: int
    too_narrow: int
    not_timed: int
    no_bound: int = 0
    not_attempted: int
    workloads: int
    problems: tuple[ProblemScore, ...]
    problem_n: int
    problem_total: int
    geometric_mean_speedup: float | None
    fast_1: float | None
    fast_2: float | None
    trust: dict[Trust, int]
