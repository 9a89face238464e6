"""Verdicts from the emulated card, as pages show them: a row a record, and below a workload what ran and was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from solbench.model.emulation import TARGET, EmulatedInstance, Executed, Way, moved_bytes
from solbench.model.trace import Status
from solbench.model.verdict import Verdict
from solbench.site import text
from solbench.site.cells import Cell, missing, number, ref
from solbench.site.links import Links
from solbench.site.records import Book, Bound, ProblemRecords, Record, TargetRecords, WorkloadRecords
from solbench.site.timing import check_row

# What a pair of a workload and a candidate came to. ``small``: passed, but not run at the workload's own sizes.
KINDS: Final = ("passed", "small", "failed", "unsupported", "none")
# Languages whose candidates are machine code of their own.
_LANGUAGES = frozenset({"triton", "hip_cpp"})


def rows(
    links: Links, problem: ProblemRecords, workload: WorkloadRecords, target: TargetRecords
) -> list[dict[str, Any]]:
    """One a verdict of a workload on ``target``."""
    records = workload.verdicts.get(target.name, ())
    return [_row(links, problem, record, workload.bounds.get(target.name)) for record in records]


def tools(records: Iterable[Record[Verdict]]) -> str:
    """What the verdicts came about with: versions, and the emulator's code by its digest."""
    found = set()
    for record in records:
        made = record.value.toolchain
        versions = [f"{name} {version}" for name, version in sorted(made.tools.items())]
        found.add(text.listed([f"emulator {text.short_digest(made.emulator)}", *versions]))
    return "; ".join(sorted(found))


def counts(book: Book, target: str) -> Counter[str]:
    """Pairs of a workload and a solution that has a verdict or is a candidate for ``target``, by what the verdict is:
    one of :data:`KINDS`. Empty where candidates for it are not emulated."""
    found: Counter[str] = Counter()
    if target != TARGET:
        return found
    for problem, workload in book.workloads():
        if not workload.on(target):
            continue
        verdicts = {record.value.solution: record.value for record in workload.verdicts.get(target, ())}
        for solution in problem.solutions:
            spec, judged = solution.value.spec, verdicts.get(solution.value.name)
            if judged is not None or (target in spec.target_hardware and _LANGUAGES & set(spec.languages)):
                found[_kind(judged)] += 1
    return found


def counted(book: Book, target: str) -> str:
    """``passed for 3 of 5 pairs of workload and solution (2 at small sizes only), 1 failed, 1 not run``; "" where there
    is none."""
    found = counts(book, target)
    if not found:
        return ""
    rest = (("failed", "failed"), ("unsupported", "unsupported"), ("none", "not run"))
    others = "".join(f", {text.grouped(found[kind])} {words}" for kind, words in rest if found[kind])
    small = f" ({text.grouped(found['small'])} at small sizes only)" if found["small"] else ""
    passed, of = text.grouped(found["passed"] + found["small"]), text.grouped(found.total())
    return f"passed for {passed} of {of} pairs of workload and solution{small}{others}"


def shown_name(record: Record[Verdict]) -> str:
    """What a row stands for: the name with its stage, as the code of the same candidate has the same name."""
    return f"verdicts:{record.name}"


def _kind(verdict: Verdict | None) -> str:
    if verdict is None:
        return "none"
    if verdict.status is Status.PASSED:
        instances = verdict.emulation.instances if verdict.emulation is not None else ()
        return "passed" if any(one.reduced is None and one.ended is None for one in instances) else "small"
    return "unsupported" if verdict.status is Status.UNSUPPORTED else "failed"


def _row(links: Links, problem: ProblemRecords, record: Record[Verdict], bound: Record[Bound] | None) -> dict[str, Any]:
    verdict = record.value
    instances = verdict.emulation.instances if verdict.emulation is not None else ()
    executed = next((one.executed for one in instances if one.reduced is None), None)
    ended = [one for one in instances if one.ended is None]
    calls = sum(len(one.calls) for one in ended)
    return {
        "record": shown_name(record),
        "solution": verdict.solution,
        "solution_href": links.page("solution", f"{problem.key}/solutions/{verdict.solution}"),
        "status": verdict.status.value,
        "state": {"failed": "failed", "unsupported": "not_attempted"}.get(_kind(verdict), ""),
        "reason": verdict.reason or "",
        "ran": " and ".join(dict.fromkeys("small" if one.reduced else "whole" for one in ended)) or "nothing",
        "calls": number(links, calls, text.grouped(calls), record.descriptor),
        "cells": _cells(links, record, executed, bound),
        "rounds": text.grouped(verdict.correctness.rounds) if verdict.correctness else "",
        "checks": [check_row(links, record.descriptor, one) for one in verdict.correctness.checks]
        if verdict.correctness
        else [],
        "sizes": [pair for one in instances for pair in (_size(one), *_warnings(one))],
        "executed": _executed(executed) if executed is not None else [],
        "log": text.Lines(verdict.log) if verdict.log else "",
        "ref": ref(links, f"verdict on {verdict.solution}", record.descriptor),
    }


def _cells(links: Links, record: Record[Verdict], executed: Executed | None, bound: Record[Bound] | None) -> list[Cell]:
    """Wave-instructions, bytes loaded and stored, operations of matrix instructions: of one call of the whole workload,
    each beside what the bound requires."""
    if executed is None:
        return [missing("not run whole"), *[missing("—")] * 3]
    result = bound.value.result if bound is not None else None

    def cell(value: int, shown: str, required: float | None, words: str) -> Cell:
        beside = words.format(text.ratio(value / required)) if required else ""
        return number(links, value, shown, record.descriptor, beside)

    loaded, stored = moved_bytes(executed.loaded_bytes), moved_bytes(executed.stored_bytes)
    matrix = sum(executed.wmma_operations.values())
    memory = result.memory if result else None
    return [
        cell(executed.instructions, text.grouped(executed.instructions), None, ""),
        cell(loaded, text.quantity(loaded, "B"), memory.live_read_bytes if memory else None, "each live byte {}"),
        cell(stored, text.quantity(stored, "B"), memory.live_write_bytes if memory else None, "each live byte {}"),
        cell(matrix, text.quantity(matrix, "op"), result.flops if result else None, "{} the bound’s")
        if matrix
        else missing("none"),
    ]


_WAYS: Mapping[Way, str] = {
    "lock-step": "in lock-step",
    "lock-step, checked": "in lock-step with every access looked at",
    "permuted": "with waves in turn",
}


def _size(instance: EmulatedInstance) -> tuple[str, str]:
    """At which sizes, and how its calls ran there, or why they did not end."""
    smaller = (instance.reduced or "").removeprefix("reduced: ").replace("->", "→")
    where = f"smaller, {smaller}" if smaller else "the workload itself"
    if instance.ended is not None:
        return where, f"not to its end: {instance.ended}"
    calls = Counter(instance.calls)
    return where, text.listed(f"{text.plural(count, 'call')} {_WAYS[way]}" for way, count in calls.items())


def _warnings(instance: EmulatedInstance) -> list[tuple[str, str]]:
    """What the emulator saw there that does not fail the verdict."""
    return [("warning", words) for words in instance.warnings]


def _executed(executed: Executed) -> list[tuple[str, str]]:
    """What one call of the whole workload executed, in words."""
    pairs = [
        ("launches", text.listed(map(_launch, executed.launches)) + _more(executed)),
        ("instructions by engine", _counted(executed.engines, "")),
        ("loaded by memory", _counted(executed.loaded_bytes, "B")),
        ("stored by memory", _counted(executed.stored_bytes, "B")),
        ("matrix operations by format", _counted(executed.wmma_operations, "op")),
    ]
    return [(name, words) for name, words in pairs if words]


def _launch(launch: Any) -> str:
    extent = ["×".join(text.grouped(size) for size in dimensions) for dimensions in (launch.grid, launch.block)]
    tuned = f" [{launch.configuration}]" if launch.configuration else ""
    return f"{launch.kernel}{tuned}, {extent[0]} work-groups of {extent[1]} threads"


def _more(executed: Executed) -> str:
    more = executed.count - len(executed.launches)
    return f", and {text.grouped(more)} more" if more else ""


def _counted(found: Mapping[str, int], unit: str) -> str:
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return text.listed(f"{name} {text.quantity(n, unit) if unit else text.grouped(n)}" for name, n in ordered if n)
