"""Recorded verdicts: every Triton and HIP candidate of a corpus on the emulated card, and whether they hold again.

While a set (:mod:`solbench.evaluate.verdict_sets`) is being written it is ``<name>.jsonl.partial``, and a run that was
killed goes on from there.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solbench.corpus.load import Problem
from solbench.errors import InputError
from solbench.evaluate import identity
from solbench.evaluate.build import BuildFailure
from solbench.evaluate.emulated import Plan, evaluate_emulated
from solbench.evaluate.growing import Growing
from solbench.evaluate.session import Session
from solbench.evaluate.verdict_sets import Judged, Key, parsed, read, written
from solbench.model.emulation import TARGET
from solbench.model.solution import Solution
from solbench.model.trace import Trace
from solbench.model.verdict import VerdictSetHeader
from solbench.model.workload import Workload

LANGUAGES: Final = frozenset({"triton", "hip_cpp"})
# Wave-instructions of one call: less than of a single evaluation, so that a whole corpus takes minutes.
INSTRUCTIONS: Final = 3_000_000
_LIBRARIES: Final = ("numpy", "torch", "triton")


@dataclass(frozen=True)
class Recorded:
    """What a run came to: ``verdicts`` in the set now, ``anew`` of them judged by this run, ``passed`` of them all."""

    verdicts: int
    anew: int
    passed: int

    def __str__(self) -> str:
        return f"{self.verdicts} verdicts, {self.anew} anew, {self.passed} passed"


@dataclass(frozen=True)
class _Job:
    problem: Problem
    solution: Solution
    workload: Workload

    @property
    def key(self) -> Key:
        return Key(self.problem.key, self.solution.name, self.workload.uuid)

    @property
    def digests(self) -> tuple[str, str]:
        return identity.solution_digest(self.solution), identity.workload_digest(self.problem, self.workload)


def record(
    problems: Sequence[Problem],
    out: Path,
    session: Session,
    *,
    instructions: int = INSTRUCTIONS,
    whole: bool = True,
    progress: Callable[[str], None] = lambda text: None,
) -> Recorded:
    """Judge the candidates of ``problems`` and write the set ``out``. ``session``: an emulated one.

    What is there already, complete or partial, is taken over where emulator, versions, limit, solution and workload are
    the same. ``whole``: ``problems`` are all there are; else records of others stay, and :class:`InputError` where they
    cannot, as they were recorded under another header.
    """
    header = header_here(instructions)
    jobs = _jobs(problems)
    wanted = {job.key: job.digests for job in jobs}
    if not wanted:
        raise InputError("verdicts", f"no Triton or HIP solution for {TARGET} among these problems")
    chosen = {problem.key for problem in problems}
    known: dict[Key, Judged] = {}
    if out.exists():
        there, records = read(out)
        if there == header:
            known = {one.key: one for one in records}
        elif not whole:
            raise InputError(
                str(out), f"has another {_difference(there, header)}; record all problems again, or remove it"
            )
    with Growing(out.with_name(f"{out.name}.partial")) as file:
        if data := file.lines():
            begun, records, _ = parsed(data, str(file.path))
            known |= {one.key: one for one in records} if begun == header else {}
        known = {
            key: one for key, one in known.items()
            if (wanted.get(key) == (one.trace.solution_digest, one.trace.workload_digest))
            or (not whole and key.problem not in chosen)
        }  # fmt: skip
        file.rewrite(written(header, known.values(), complete=False))
        anew = 0
        for key, trace in _judged([job for job in jobs if job.key not in known], session, instructions, progress):
            known[key] = Judged.of(key.problem, trace)
            file.append(known[key].data)
            anew += 1
        file.rewrite(written(header, known.values(), complete=True))
        file.rename(out)
    return Recorded(len(known), anew, sum(one.trace.status == "PASSED" for one in known.values()))


def check(
    path: Path, problems: Sequence[Problem], session: Session, *, progress: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[Key, str | None]]:
    """Judge the candidates of ``problems`` again, under the limit of the set ``path``: of each verdict, and of each
    record of these problems, what is different, or None.

    Compared are status and what the first call at each size executed, where both did so.
    """
    header, records = read(path)
    recorded = {one.key: one.trace for one in records}
    here = header_here(header.instructions)
    if here != header:
        progress(f"recorded with another {_difference(here, header)} than is here")
    jobs = _jobs(problems)
    wanted = {job.key: job for job in jobs}
    chosen = {problem.key for problem in problems}
    for key in sorted(recorded.keys() - wanted.keys()):
        if key.problem in chosen:
            yield key, "recorded, and there is no such candidate or workload any more"
    current = []
    for job in jobs:
        there = recorded.get(job.key)
        if there is None:
            yield job.key, "not recorded"
        elif (there.solution_digest, there.workload_digest) != job.digests:
            yield job.key, "stale: the solution or the workload has changed since"
        else:
            current.append(job)
    for key, trace in _judged(current, session, header.instructions, progress):
        yield key, difference(recorded[key], trace)


def difference(recorded: Trace, now: Trace) -> str | None:
    """What another run of the same found otherwise, or None."""
    if recorded.status != now.status:
        return f"was {recorded.status}, is {now.status}: {now.reason}"
    before, after = (trace.emulation.instances if trace.emulation else () for trace in (recorded, now))
    sizes = [[(one.axes, one.ended is None) for one in instances] for instances in (before, after)]
    if sizes[0] != sizes[1]:
        return f"ran to its end at other sizes: {sizes[0]}, now {sizes[1]}"
    for old, new in zip(before, after, strict=True):
        if old.executed is None or new.executed is None or old.executed == new.executed:
            continue
        fields = ("instructions", "count", "engines", "wmma_operations", "loaded_bytes", "stored_bytes", "launches")
        name = next(name for name in fields if getattr(old.executed, name) != getattr(new.executed, name))
        values = [getattr(one.executed, name) for one in (old, new)]
        told = f"{name} {values[0]}, now {values[1]}" if name != "launches" else "other launches"
        return f"at {old.reduced or 'the whole size'}: executed {told}"
    return None


def header_here(instructions: int = INSTRUCTIONS) -> VerdictSetHeader:
    """Of what is recorded on this machine now."""
    from solbench.code.hip import toolchain

    tools = {name: importlib.metadata.version(name).partition("+")[0] for name in _LIBRARIES}
    try:
        tools["hip compiler"] = toolchain(TARGET)["version"].partition("\n")[0]
    except BuildFailure:
        tools["hip compiler"] = "none"
    emulator = identity.emulator_digest()
    return VerdictSetHeader(target=TARGET, emulator=emulator, tools=tools, instructions=instructions)  # type: ignore[call-arg]


def _jobs(problems: Sequence[Problem]) -> list[_Job]:
    return [
        _Job(problem, solution, workload)
        for problem in sorted(problems, key=lambda problem: problem.key)
        for solution in sorted(problem.solutions, key=lambda solution: solution.name)
        if TARGET in solution.spec.target_hardware and LANGUAGES & set(solution.spec.languages)
        for workload in problem.workloads
    ]


def _judged(
    jobs: Sequence[_Job], session: Session, instructions: int, progress: Callable[[str], None]
) -> Iterator[tuple[Key, Trace]]:
    """A verdict each; the workloads of one solution run in one process."""
    groups: dict[tuple[str, str], list[_Job]] = {}
    for job in jobs:
        groups.setdefault((job.key.problem, job.key.solution), []).append(job)
    done = 0
    for group in groups.values():
        first = group[0]
        traces = evaluate_emulated(
            first.problem, first.solution, session,
            workloads=[job.workload for job in group], plan=Plan(instructions),
        )  # fmt: skip
        for job, trace in zip(group, traces, strict=True):
            done += 1
            progress(f"{done} of {len(jobs)}  {job.key}  {trace.status}")
            yield job.key, trace


def _difference(one: VerdictSetHeader, other: VerdictSetHeader) -> str:
    fields = one.as_dict(), other.as_dict()
    return next(name for name in fields[0] if fields[0][name] != fields[1][name])
