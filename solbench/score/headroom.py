"""How near a target's candidates come to their bounds: a row a problem and what binds it, over a release's scores.

Of each workload the quickest candidate counts, whatever its entry; the baseline is no candidate, and a workload without
another one is left out. Bandwidth and rate are what the bound counts (bytes without the stores that the last cache may
hold, operations of the engine that takes longest) over the measured time, at the problem's best workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from solbench.errors import InputError
from solbench.model.solution import BASELINE
from solbench.store import Store


@dataclass(frozen=True)
class Rate:
    """Bytes or operations a second, and their share of the peak; ``what``: engine and format, "" for memory."""

    per_s: float
    share: float
    what: str = ""


@dataclass(frozen=True)
class Row:
    """``eager`` and ``best``: T_SOL / T of the baseline and of the quickest candidate, at the median of ``workloads``.
    ``ratios``: of each workload. ``entries``: how often each entry is the quickest. ``rate``: None where the bound
    counts no operations.
    """

    problem: str
    binds: str
    ratios: tuple[float, ...]
    eager: float
    best: float
    entries: Mapping[str, int]
    bandwidth: Rate
    rate: Rate | None

    @property
    def workloads(self) -> int:
        return len(self.ratios)


@dataclass(frozen=True)
class _Best:
    score: Mapping[str, Any]
    bound: Mapping[str, Any]

    @property
    def ratio(self) -> float:
        return float(self.score["t_sol_s"] / self.score["t_k"]["point_s"])


def rows(store: Store, target: str, least_s: float = 0.0) -> list[Row]:
    """Rows for ``target``, sorted by problem, of workloads whose T_SOL is at least ``least_s`` seconds.

    :class:`InputError` where the release has no such time.
    """
    bounds = {descriptor.digest: value for _, descriptor, value in store.items("bounds", "bound")}
    quickest: dict[tuple[str, str], _Best] = {}
    for _, _, score in store.items("scores", "score"):
        if score["target"] != target or score["solution"] == BASELINE or not (score["t_k"] and score["t_b"]):
            continue
        bound = bounds[score["bound"]["digest"]]
        key = bound["problem"], score["workload"]
        found = _Best(score, bound["result"])
        if score["t_sol_s"] >= least_s and (key not in quickest or found.ratio > quickest[key].ratio):
            quickest[key] = found
    if not quickest:
        raise InputError(f"--target {target}", "this release has no time of a candidate there, or none so long")
    grouped: dict[tuple[str, str], list[_Best]] = {}
    for (problem, _), best in quickest.items():
        grouped.setdefault((problem, best.bound["binds"]), []).append(best)
    return [_row(problem, binds, bests) for (problem, binds), bests in sorted(grouped.items())]


def _row(problem: str, binds: str, bests: list[_Best]) -> Row:
    top = max(bests, key=lambda best: best.ratio)
    time_s = top.score["t_k"]["point_s"]
    memory = top.bound["memory"]
    engine = max(top.bound["compute"], key=lambda one: one["seconds"], default=None)
    return Row(
        problem,
        binds,
        tuple(sorted(best.ratio for best in bests)),
        median(best.score["t_sol_s"] / best.score["t_b"]["point_s"] for best in bests),
        median(best.ratio for best in bests),
        Counter(best.score["solution"] for best in bests),
        _rate(memory["bandwidth_bytes_per_s"], memory["seconds"] / time_s),
        None if engine is None else _rate(
            engine["rate_per_s"], engine["seconds"] / time_s, f"{engine['engine']} {engine['mode']}"
        ),
    )  # fmt: skip


def _rate(peak: float, share: float, what: str = "") -> Rate:
    return Rate(peak * share, share, what)


def markdown(found: Iterable[Row]) -> list[str]:
    """The rows as a table in Markdown, and behind it a line for all workloads that one resource binds."""
    lines = [
        "| problem | binds | workloads | eager | best candidate | bandwidth | rate |",
        "|---|---|---|---|---|---|---|",
    ]
    together: dict[str, list[float]] = {}
    problems: Counter[str] = Counter()
    for row in found:
        together.setdefault(row.binds, []).extend(row.ratios)
        problems[row.binds] += 1
        names = ", ".join(name for name, _ in sorted(row.entries.items(), key=lambda item: (-item[1], item[0])))
        rate = "-" if row.rate is None else f"{row.rate.per_s / 1e12:.3g} T/s {row.rate.what}, {row.rate.share:.0%}"
        lines.append(
            f"| {row.problem.rpartition('/')[2]} | {row.binds} | {row.workloads} | {row.eager:.2f} "
            f"| {row.best:.2f} ({names}) | {row.bandwidth.per_s / 1e12:.3g} TB/s, {row.bandwidth.share:.0%} | {rate} |"
        )
    lines.append("")
    for binds, ratios in sorted(together.items()):
        lines.append(
            f"{binds}: T_SOL / T_k {median(ratios):.2f} at the median of {len(ratios)} workloads, "
            f"{problems[binds]} problems; {min(ratios):.2f} to {max(ratios):.2f}"
        )
    return lines
