"""References with what a clever kernel of theirs costs, for the tests that no bound exceeds it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bound_programs import machine

from solar.bound import bound
from solar.graph import Input
from solar.hardware import Machine

# One engine, one format: all work is comparable.
PLAIN = Machine.from_dict(machine(valu={"float32": 1e12}, bandwidth=1e9))
N, K, M = 64, 32, 48


@dataclass(frozen=True)
class Case:
    """``operations``: a multiply-add is two, any elementwise function, comparison or selection one; ``bytes``: read and
    written."""

    run: Callable[..., Any]
    shapes: tuple[Any, ...]
    operations: float
    bytes: int


def known(*values: int) -> Input:
    return Input((len(values),), "int64", values=values)


def priced(case: Case) -> tuple[float, int]:
    """Operations and bytes that the bound counts; it has to be complete."""
    from solar.convert import convert
    from solar.extract.aten import extract

    inputs = {
        f"x{i}": given if isinstance(given, Input) else Input(given, "float32") for i, given in enumerate(case.shapes)
    }
    found = bound(convert(extract(case.run, inputs)), PLAIN)
    assert found["coverage"] == "complete"
    return math.fsum(entry["ops"] for entry in found["compute"]), found["memory"]["live_bytes"]
