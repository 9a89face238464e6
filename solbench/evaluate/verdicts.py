"""Recorded verdicts: every Triton and HIP candidate of a corpus on the emulated card, and whether they hold again.

A set is JSONL, ``measurements/verdicts/<target>.jsonl``: a header (:class:`solbench.model.verdict.VerdictSetHeader`), a
canonical line a verdict (a trace and its problem), a footer with their number. While it is being written it is
``<name>.jsonl.partial``, and a run that was killed goes on from there.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from solbench import canonical
from solbench.corpus.load import Problem
from solbench.errors import InputError, IntegrityError
from solbench.evaluate import identity
from solbench.evaluate.build import BuildFailure
from solbench.evaluate.emulated import TARGET, Plan, evaluate_emulated
from solbench.evaluate.growing import Growing
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Trace
from solbench.model.verdict import VerdictSetHeader
from solbench.model.workload import Workload

LANGUAGES: Final = frozenset({"triton", "hip_cpp"})
# Wave-instructions of one call: less than of a single evaluation, so that a whole corpus takes minutes.
INSTRUCTIONS: Final = 3_000_000
_LIBRARIES: Final = ("numpy", "torch", "triton")


@dataclass(frozen=True, order=True)
class Key:
    """What a verdict is about: problem, solution and workload by name."""

    problem: str
    solution: str
    workload: str

    def __str__(self) -> str:
        return f"{self.problem}/{self.workload}  {self.solution}"


@dataclass(frozen=True)
class Judged:
    """One record of a set, and the bytes of its line."""

    key: Key
    trace: Trace
    data: bytes


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
            raise InputError(str(out), f"has another {_difference(there, header)}; record all problems again")
    with Growing(out.with_name(f"{out.name}.partial")) as file:
        if data := file.lines():
            begun, records, _ = _parsed(data, str(file.path))
            known |= {one.key: one for one in records} if begun == header else {}
        known = {
            key: one for key, one in known.items()
            if (wanted.get(key) == (one.trace.solution_digest, one.trace.workload_digest))
            or (not whole and key.problem not in chosen)
        }  # fmt: skip
        file.rewrite(b"".join((_header_line(header), *(one.data for one in known.values()))))
        anew = 0
        for key, trace in _judged([job for job in jobs if job.key not in known], session, instructions, progress):
            known[key] = Judged(key, trace, _line({"record": "verdict", "problem": key.problem, **trace.as_dict()}))
            file.append(known[key].data)
            anew += 1
        ordered = [known[key].data for key in sorted(known)]
        footer = _line({"record": "footer", "count": len(ordered)})
        file.rewrite(b"".join((_header_line(header), *ordered, footer)))
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


def read(path: Path) -> tuple[VerdictSetHeader, list[Judged]]:
    """A complete set; :class:`InputError` where it is none, or torn, short, doubled or not canonical."""
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        raise InputError(str(path), "the last line is torn; the set is not complete")
    header, records, count = _parsed(data, str(path))
    if count != len(records):
        raise InputError(str(path), f"its footer must count {len(records)} verdicts; the set is not complete")
    return header, records


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


def _parsed(data: bytes, where: str) -> tuple[VerdictSetHeader, list[Judged], int | None]:
    """Header, records and the footer's count (None without one) of whole lines."""
    lines = data.splitlines(keepends=True)
    first = _value(lines[0] if lines else b"", f"{where}: line 1")
    if first.pop("record", None) != "header":
        raise InputError(f"{where}: line 1", "must be the header of a set of verdicts")
    header = VerdictSetHeader.load(first, f"{where}: line 1")
    records: dict[Key, Judged] = {}
    for number, line in enumerate(lines[1:], start=2):
        value = _value(line, f"{where}: line {number}")
        kind = value.pop("record", None)
        if kind == "footer" and number == len(lines) and value.keys() == {"count"}:
            return header, list(records.values()), value["count"]
        one = _record(kind, value, line, header, f"{where}: line {number}")
        if one.key in records:
            raise InputError(f"{where}: line {number}", f"a second verdict of {one.key}")
        records[one.key] = one
    return header, list(records.values()), None


def _record(kind: Any, value: dict[str, Any], line: bytes, header: VerdictSetHeader, where: str) -> Judged:
    problem = value.pop("problem", None)
    if kind != "verdict" or not isinstance(problem, str):
        raise InputError(where, "must be a verdict and name its problem")
    trace = Trace.load(value, where)
    if trace.target != header.target or trace.timing is not None or trace.card is not None:
        raise InputError(where, f"must be an emulated verdict for {header.target}: no card, no time")
    return Judged(Key(problem, trace.solution, trace.workload), trace, line)


def _value(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = canonical.loads(line.removesuffix(b"\n"), where)
    except IntegrityError as error:
        raise InputError(where, str(error).removeprefix(f"{where}: ")) from None
    if not isinstance(value, dict):
        raise InputError(where, "must be a JSON object")
    return value


def _line(value: Mapping[str, Any]) -> bytes:
    return canonical.dumps(dict(value)) + b"\n"


def _header_line(header: VerdictSetHeader) -> bytes:
    return _line({"record": "header", **header.as_dict()})
