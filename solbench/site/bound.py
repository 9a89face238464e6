"""One bound, explained: its terms with their numbers, what was assumed, what each operation and tensor is charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solbench.site import text
from solbench.site.cells import Cell, missing, number, ref
from solbench.site.links import Links
from solbench.site.records import Bound, BoundResult, OpTerm, Record, TargetRecords, tensors_of, terms_of


def explained(
    links: Links, target: TargetRecords, record: Record[Bound], before: Mapping[str, Record[Bound]]
) -> dict[str, Any]:
    """The terms of one bound: compute by engine, memory, what was assumed and left out.

    ``before``: bounds of the same workload that stand above it, by target; charges that are the same are not repeated.
    """
    source, result = record.descriptor, record.value.result
    common = {
        "target": target.name,
        "href": links.page("target", target.name),
        "ref": ref(links, f"bound on {target.name}", source),
    }
    if result is None:
        return {**common, "reason": record.value.reason or "no reason recorded", "result": None}

    def value(amount: float, unit: str) -> Cell:
        return number(links, amount, text.quantity(amount, unit), source)

    memory = result.memory
    return {
        **common,
        "reason": "",
        "result": {
            "t_sol": value(result.t_sol_s, "s"),
            "binds": result.binds,
            "terms_of_max": _terms_of_max(result),
            "coverage": result.coverage,
            "uncounted": list(result.uncounted),
            "class": result.class_,
            "draws": result.draws,
            "macs": value(result.macs, "MAC"),
            "dense": None if result.dense_macs in (None, result.macs) else value(result.dense_macs or 0, "MAC"),
            "flops": value(result.flops, "FLOP"),
            "rejected": text.listed(record.value.rejected_formats) or "none",
            "compute": [
                {
                    "engine": term.engine,
                    "mode": term.mode,
                    "ops": value(term.ops, "op"),
                    "rate": value(term.rate_per_s, "op/s"),
                    "seconds": value(term.seconds, "s"),
                    "binds": term.engine == result.binds,
                }
                for term in result.compute
            ],
            "memory": {
                "live": value(memory.live_bytes, "B"),
                "read": value(memory.live_read_bytes, "B"),
                "written": value(memory.live_write_bytes, "B"),
                "declared": value(memory.declared_bytes, "B"),
                "absorbed": value(memory.absorbed_write_bytes, "B") if memory.absorbed_write_bytes else None,
                "bandwidth": value(memory.bandwidth_bytes_per_s, "B/s"),
                "seconds": value(memory.seconds, "s"),
                "binds": result.binds == "memory",
            },
            "terms_as_on": _as_on(before, "terms", result.terms),
            "tensors_as_on": _as_on(before, "tensors", result.tensors),
            "terms": _operations(terms_of(record)),
            "tensors": [
                {
                    "name": tensor.name,
                    "role": tensor.role,
                    "live": _plain(tensor.live_bytes, "B"),
                    "declared": _plain(tensor.declared_bytes, "B"),
                }
                for tensor in tensors_of(record)
            ],
            "assumptions": list(result.assumptions),
            "looseness": list(result.looseness),
        },
    }


def _as_on(before: Mapping[str, Record[Bound]], field: str, charges: tuple[Any, ...]) -> str:
    """The first target whose bound charges the same; "" for none."""
    results = ((name, record.value.result) for name, record in before.items())
    return next((name for name, result in results if result is not None and getattr(result, field) == charges), "")


def _terms_of_max(result: BoundResult) -> list[dict[str, Any]]:
    """What T_SOL is the largest of: each engine's seconds over all its modes, and memory's. ``share``: of T_SOL, %."""
    engines: dict[str, float] = {}
    for term in result.compute:
        engines[term.engine] = engines.get(term.engine, 0.0) + term.seconds
    times = [*engines.items(), ("memory", result.memory.seconds)]
    return [
        {
            "name": name,
            "time": text.quantity(seconds, "s"),
            "share": f"{100 * min(seconds / result.t_sol_s, 1.0):.1f}" if result.t_sol_s else "0.0",
            "binds": name == result.binds,
        }
        for name, seconds in times
    ]


def _plain(amount: float, unit: str) -> Cell:
    """One of many numbers of a bound; the link to its object stands above the table."""
    return Cell(text.quantity(amount, unit), title=text.exact(amount), sort=text.exact(amount))


def _operations(terms: Sequence[OpTerm]) -> list[dict[str, Any]]:
    """What each operation is charged; operations alike in all but their name (an unrolled loop) share a row."""
    alike: dict[tuple[Any, ...], list[OpTerm]] = {}
    for term in terms:
        alike.setdefault((term.kind, term.function, term.engine, term.mode, term.work), []).append(term)
    rows = []
    for group in alike.values():
        first, more = group[0], len(group) - 1
        work = first.work
        rows.append(
            {
                "op": first.op,
                "more": f"and {text.grouped(more)} more, each" if more else "",
                "kind": first.kind,
                "function": first.function,
                "engine": first.engine or "—",
                "mode": first.mode or "—",
                "work": missing("—") if work is None else _plain(work, "op"),
            }
        )
    return rows
