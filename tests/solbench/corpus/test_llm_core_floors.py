"""Bounds of LLM_CORE against independently derived minima: what every draw needs is never less than a bound counts.

``llm_core_golden.csv`` gives the multiply-adds (as flops) and bytes that any draw of a workload's generators needs. A
bound that counts more is wrong. One that counts less is loose; where it does, and how far down, is in ``LOOSE``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from llm_core_smoke import bounded

from solbench.corpus.llm_core.generate import generate
from solbench.corpus.llm_core.rules import load_rules
from solbench.model.workload import Values, Workload

PROBLEMS = Path(__file__).resolve().parents[3] / "problems"
DATA = Path(__file__).resolve().parent / "llm_core"
Axes = Mapping[str, int]
Cost = tuple[float, float]  # bytes, flops


@cache
def golden() -> dict[tuple[str, str], dict[str, str]]:
    with (DATA / "llm_core_golden.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["target"], row["class_gib"]) == ("gfx1200", "16")]
    return {(row["id"], row["slot"]): row for row in rows}


NAMES = sorted({name for name, _ in golden()})


@cache
def sized() -> dict[str, dict[str, tuple[str, dict[str, int]]]]:
    view = generate(load_rules(PROBLEMS / "LLM_CORE"), "gfx1200", 16)
    return {d.name: {w.slot: (w.uuid, w.axes) for w in d.workloads} for d in view.generated}


def counted(name: str, slot: str) -> tuple[Workload, Cost]:
    """The workload, and what its bound counts."""
    workload, bound = bounded(name, *sized()[name][slot])
    return workload, (bound["memory"]["live_bytes"], 2 * bound["macs"])


def frozen(workload: Workload, name: str) -> list[int]:
    values = workload.inputs[name]
    assert isinstance(values, Values)
    return [int(value) for value in values.values]


def groups_used(workload: Workload) -> int:
    offsets = frozen(workload, "group_offsets")
    return sum(first < last for first, last in pairwise(offsets))


def decode(a: Axes, w: Workload) -> Cost:
    """q and the output, the lengths, and the visible keys, which are the values too."""
    visible = sum(frozen(w, "seq_lens"))
    return 4 * a["B"] * a["HQ"] * a["D"] + 4 * a["B"] + 2 * a["D"] * visible, 4 * a["HQ"] * a["D"] * visible


# Inputs that decide work are frozen with the workload: it needs what these values need, not the luckiest draw.
FROZEN: dict[str, Callable[[Axes, Workload], Cost]] = {
    "attention_mqa_decode": decode,
    "linear_grouped_silu": lambda a, w: (
        2 * a["R"] * (a["K"] + a["N"]) + 4 * (a["G"] + 1) + 2 * a["K"] * a["N"] * groups_used(w),
        2 * a["R"] * a["K"] * a["N"],
    ),
    "moe_fused_gate_up": lambda a, w: (
        2 * a["R"] * (a["D"] + a["I"]) + 4 * (a["EL"] + 1) + 4 * a["D"] * a["I"] * groups_used(w),
        4 * a["R"] * a["D"] * a["I"],
    ),
    "moe_grouped_expert": lambda a, w: (
        4 * a["R"] * a["D"] + 4 * (a["EL"] + 1) + 6 * a["D"] * a["I"] * groups_used(w),
        6 * a["R"] * a["D"] * a["I"],
    ),
}


def visible(a: Axes) -> int:
    """Pairs of a query and a key that is not after it, of one head; queries are the last ones."""
    return a["S"] * (a["T"] - a["S"]) + a["S"] * (a["S"] + 1) // 2


# Where a bound counts less than is needed: a share of the need, or what it must count at least; and the cause. Masks,
# tables, ids and logits that are drawn anew are data to the bound, so it takes the choice that costs least.
Least = Callable[[Axes], Cost]
LOOSE: dict[str, tuple[float | Least, str]] = {
    "advanced_attention_mla_compressed": (0.99, "a few columns of a structured product are not charged"),
    "advanced_attention_indexed_sparse": (
        lambda a: (
            4 * a["B"] * visible(a) + 2 * a["B"] * a["HQ"] * a["S"] * a["DV"],
            0,
        ),
        "all queries may select the same row, and a softmax over equal rows needs no scores",
    ),
    "attention_masked_softmax": (
        lambda a: (2 * a["B"] * a["HQ"] * a["S"] * a["D"], 0),
        "all heads may select the same blocks, and a block may hide all but one key, whose probability is 1",
    ),
    "kv_cache_cache_gather": (
        lambda a: (4 * a["B"] * a["T"] * a["HK"] * a["D"], 0),
        "all entries of the block table may name one page; the outputs are written",
    ),
    "kv_cache_cache_scatter": (0.49, "any row of the cache may be overwritten and any key dropped: written, not read"),
    "kv_cache_paged_write": (0.49, "any row of the cache may be overwritten and any key dropped: written, not read"),
    "moe_route_top2": (
        lambda a: (2 * a["M"] * a["D"] + 4 * a["M"] * a["E"], 0),
        "each expert is computed for all rows and chosen by a mask, which may choose none of them",
    ),
    "moe_shared_expert": (
        lambda a: (4 * a["M"] * a["D"] + 6 * a["D"] * a["I"], 6 * a["M"] * a["D"] * a["I"]),
        "the shared expert is charged, the routed ones are chosen by a mask",
    ),
    "moe_routed_residual": (
        lambda a: (6 * a["M"] * a["D"] + 6 * a["D"] * a["I"], 6 * a["M"] * a["D"] * a["I"]),
        "the shared expert is charged, the routed one is chosen by a mask",
    ),
}


def need(name: str, slot: str, workload: Workload) -> Cost:
    row = golden()[name, slot]
    assert json.loads(row["axes"]) == workload.axes
    least = int(row["touched_bytes_min"]), int(row["required_flops_min"])
    if name not in FROZEN:
        return least
    exact = FROZEN[name](workload.axes, workload)
    assert not wrong(least, exact)
    return exact


def wrong(found: Cost, needed: Cost) -> list[str]:
    return [what for what, here, there in zip(("bytes", "flops"), found, needed) if here > there]


def check(name: str, slot: str) -> None:
    workload, found = counted(name, slot)
    needed = need(name, slot, workload)
    assert not wrong(found, needed), f"counts {found}, needed are {needed}"
    least = needed
    if name in LOOSE:
        share = LOOSE[name][0]
        least = (share * needed[0], share * needed[1]) if isinstance(share, float) else share(workload.axes)
    assert not wrong(least, found), f"counts {found}, at least {least} were counted"


@pytest.mark.parametrize("name", NAMES)
def test_a_small_workload_is_bounded_by_what_it_needs(name: str) -> None:
    check(name, "smoke")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_other_workload_is_bounded_by_what_it_needs(name: str) -> None:
    for slot in sized()[name]:
        check(name, slot)


def test_a_bound_above_the_need_is_wrong() -> None:
    assert wrong((101, 50), (100, 50)) == ["bytes"] and wrong((100, 51), (100, 50)) == ["flops"]
    assert not wrong((100, 50), (100, 50))
