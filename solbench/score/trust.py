"""Whose word a result is, and whether another card said the same.

A trace is the word of whoever ran the harness. What makes it more than that is the same workload and solution, measured
again under the same protocol on another card, with the same verdict and the same S.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from solbench.model.score import Score, Trust
from solbench.model.trace import Trace
from solbench.score.records import Record
from solbench.score.workload import sol_score

# Two scores this far apart are two results: what 8.8 timing errors of headroom resolve around S = 0.5.
RESOLVED: Final = 0.03


def trust(record: Record, score: Score, reproductions: Iterable[tuple[Record, Score]]) -> Trust | None:
    """Label of ``score``, which ``record`` gave; None for an omission.

    ``reproductions``: records of the same workload and solution, none of them stale, each with the score that it gives.
    One that says otherwise outweighs those that agree; one on the same card, under another protocol, or without a
    verdict says nothing.
    """
    if not isinstance(record.value, Trace) or score.state == "not_attempted":
        return None
    said = set()
    for other, found in reproductions:
        comparable = isinstance(other.value, Trace) and other.header.protocol.name == record.header.protocol.name
        if comparable and card(other) != card(record):
            said.add(_agree(score, found))
    if False in said:
        return "not reproduced on another card"
    if True in said:
        return "reproduced on another card"
    return "imported" if record.origin == "imported" else "self-reported"


def card(record: Record) -> str:
    """What tells one card from another: the UUID that a trace names; without cards, the device of its set.

    Two machines whose device reads the same count as one.
    """
    if isinstance(record.value, Trace) and record.value.card is not None:
        return record.value.card
    device = {name: value for name, value in record.header.device.items() if name != "floors"}
    return json.dumps(device, sort_keys=True)


def _agree(one: Score, other: Score) -> bool | None:
    """Whether two scores of the same work are the same result; None where one of them is no result."""
    verdicts = {one.state == "failed", other.state == "failed"}
    if verdicts == {True}:
        return True
    values = [_value(score) for score in (one, other) if score.state != "failed"]
    if any(value is None for value in values):
        return None
    if verdicts == {True, False}:
        return False
    first, second = (value for value in values if value is not None)
    return abs(first - second) <= RESOLVED


def _value(score: Score) -> float | None:
    """S of the medians, also where the headroom is too narrow to publish it; None where there is none."""
    if score.state not in ("scored", "too_narrow") or score.t_k is None or score.t_b is None or score.t_sol_s is None:
        return None
    return sol_score(score.t_k.point_s, score.t_b.point_s, score.t_sol_s)
