"""What a Triton candidate becomes on a card that is not here: asks a confined process, and reads what it left.

One process for all workloads of a solution; where it crashes or hangs, that workload has failed and the next ones get a
process of their own. Everything that comes back is the candidate's: sizes, names and digests are checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from solbench import canonical
from solbench.child import ask
from solbench.code.plain_file import last_bytes, open_plain
from solbench.code.targets import device
from solbench.errors import IntegrityError, UnsupportedError
from solbench.model.code import Argument, Status
from solbench.model.definition import Definition, resolve_shape
from solbench.model.record import Value
from solbench.model.solution import Solution
from solbench.model.workload import Constant, ScalarInput, Workload

# Seconds for the process to start: PyTorch and Triton take some of them.
START_S = 120.0


@dataclass(frozen=True)
class Limits:
    """``timeout_s``: for loading, and for each workload. ``memory_bytes``: what the process may map; ``object_bytes``:
    of one file that it leaves."""

    timeout_s: float = 120.0
    memory_bytes: int = 8 << 30
    object_bytes: int = 16 << 20


class Launch(Value):
    """One kernel as host code launched it, or why it was not compiled. Nulls where ``fault`` says why."""

    kernel: str
    config: str | None
    grid: tuple[int, int, int] | None = None
    threads: int | None = Field(None, ge=1)
    dynamic_lds_bytes: int | None = Field(None, ge=0)
    stages: int | None = None
    arguments: tuple[Argument, ...] = ()
    constexprs: dict[str, Any] = {}
    dots: tuple[tuple[str, str, str], ...] | None = None
    code_object: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    assembly: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    fault: str | None = None


class _Answer(Value):
    workload: str
    launches: tuple[Launch, ...]
    library_calls: dict[str, int]
    fault: tuple[Literal["compile", "host"], str, str] | None


@dataclass(frozen=True)
class Recorded:
    """One workload: what was launched, what PyTorch would compute itself, and how it went.

    ``reason`` and ``log`` (the last lines, not reproducible) are None where ``status`` is COMPILED.
    """

    workload: str
    status: Status
    launches: tuple[Launch, ...] = ()
    library_calls: Mapping[str, int] | None = None
    reason: str | None = None
    log: str | None = None


def toolchain() -> dict[str, Any]:
    """What compiles a Triton candidate: part of every record. :class:`UnsupportedError` without Triton."""
    from solbench.code.recording import ENVIRONMENT

    try:
        return {"compiler": "triton", "version": version("triton"), "environment": ENVIRONMENT}
    except PackageNotFoundError:
        raise UnsupportedError("Triton is not installed; run `pip install 'solbench[run]'`") from None


def record_triton(
    definition: Definition,
    solution: Solution,
    workloads: Sequence[tuple[Workload, Mapping[str, int]]],
    target: str,
    limits: Limits,
) -> tuple[list[Recorded], dict[str, bytes]]:
    """What each workload's call launches, in their order, and the files that it names by their BLAKE3 (hex).

    ``workloads``: with their resolved axes. :class:`UnsupportedError` for an unknown target, or without Triton.
    """
    card = device(target)
    toolchain()
    inputs: list[dict[str, Any]] = [
        {"uuid": workload.uuid, "arguments": arguments(definition, solution, workload, axes)}
        for workload, axes in workloads
    ]
    request = {
        "sources": {source.path: source.content for source in solution.sources},
        "entry": solution.spec.entry_point, "arch": target, "device": card,
        "limit_s": limits.timeout_s,
    }  # fmt: skip
    found: dict[str, Recorded] = {}
    files: dict[str, bytes] = {}
    while remaining := [item for item in inputs if item["uuid"] not in found]:
        with tempfile.TemporaryDirectory(prefix="solbench-code-") as name:
            folder = Path(name)
            answers, ended = ask(
                "solbench.code.recording:records", {**request, "workloads": remaining}, folder,
                timeout_s=START_S + (1 + len(remaining)) * limits.timeout_s, memory_bytes=limits.memory_bytes,
            )  # fmt: skip
            for item, answer in zip(remaining, _read(answers, remaining), strict=False):
                found[item["uuid"]] = _recorded(answer, folder, files, limits)
            if len(found) < len(inputs):
                lost = next(item["uuid"] for item in inputs if item["uuid"] not in found)
                found[lost] = _lost(lost, ended, folder, limits)
    return [found[item["uuid"]] for item in inputs], files


def arguments(
    definition: Definition, solution: Solution, workload: Workload, axes: Mapping[str, int]
) -> list[dict[str, Any]]:
    """What ``run`` is called with: shapes and dtypes, scalars by value; outputs too where it writes in place."""
    values: list[dict[str, Any]] = []
    for name, spec in definition.inputs.items():
        generator = workload.inputs[name]
        if spec.shape is None:
            assert isinstance(generator, (Constant, ScalarInput))
            values.append({"value": generator.value})
        else:
            values.append({"shape": list(resolve_shape(spec, dict(axes))), "dtype": spec.dtype})
    if solution.spec.destination_passing_style:
        for spec in definition.outputs.values():
            values.append({"shape": list(resolve_shape(spec, dict(axes))), "dtype": spec.dtype})
    return values


def _read(answers: Sequence[Any], asked: Sequence[Mapping[str, Any]]) -> Iterator[_Answer]:
    """Answers in the order in which they were asked for, up to the first that is none, or that no artifact can hold."""
    for item, answer in zip(asked, answers, strict=False):
        try:
            canonical.dumps(answer)
            read = _Answer.model_validate(answer)
        except (IntegrityError, ValidationError):
            return
        if read.workload != item["uuid"]:
            return
        yield read


def _recorded(answer: _Answer, folder: Path, files: dict[str, bytes], limits: Limits) -> Recorded:
    for launch in answer.launches:
        for digest in (launch.code_object, launch.assembly):
            if digest is not None and digest not in files:
                data = _file(folder / "out" / digest, digest, limits.object_bytes)
                if isinstance(data, str):
                    return Recorded(answer.workload, "COMPILE_ERROR", reason=f"{launch.kernel}: {data}")
                files[digest] = data
    if answer.fault is None:
        if not answer.launches:
            return Recorded(answer.workload, "UNSUPPORTED", (), answer.library_calls, "it launches no Triton kernel")
        return Recorded(answer.workload, "COMPILED", answer.launches, answer.library_calls)
    kind, reason, log = (text.replace(str(folder), "") for text in answer.fault)
    status: Status = "COMPILE_ERROR" if kind == "compile" else "RUNTIME_ERROR"
    text = reason if kind == "compile" else f"host code fails on tensors without values: {reason}"
    return Recorded(answer.workload, status, answer.launches, answer.library_calls, text, log)


def _file(path: Path, digest: str, most: int) -> bytes | str:
    """Bytes of a file that a candidate's process left under its digest, or what is wrong with it."""
    try:
        with open_plain(path) as file:
            data = file.read(most + 1)
    except OSError:
        return "what was compiled is not there"
    if len(data) > most:
        return f"what was compiled is no file of at most {most} bytes"
    return data if canonical.digest(data) == f"blake3:{digest}" else "what was compiled was changed afterwards"


def _lost(uuid: str, ended: str | None, folder: Path, limits: Limits) -> Recorded:
    """A workload whose process ended before it had answered."""
    text = last_bytes(folder / "log", 4_000).decode("utf-8", "replace")
    if ended in ("timeout", "ended by SIGALRM"):
        reason = f"not compiled within {limits.timeout_s:g} s"
    else:
        reason = f"compiler or host code {ended or 'gave an answer that cannot be read'}"
    return Recorded(uuid, "COMPILE_ERROR", reason=reason, log=text.replace(str(folder), ""))
