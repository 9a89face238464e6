"""Our references against the oracles of the tasks they come from, where a clone of the source is at hand.

An oracle is what a task's semantic reference defines, in one of the forms of :mod:`solbench.corpus.oracle`. It is
foreign code: only bytes that the manifest pins are run, in a confined process that gets inputs and hands back tensors
as bytes; what it says is judged here, by the workload's own checks, rounded to the declared dtypes.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from solbench.checks import check_outputs
from solbench.child import ask
from solbench.corpus.load import Problem
from solbench.corpus.manifest import Corpus, Entry, artifact_bytes, require_pinned, unbound
from solbench.corpus.materialize import folder_name
from solbench.corpus.reduce import Instance, reduced
from solbench.corpus.reference import load_reference, named_outputs
from solbench.errors import InputError
from solbench.inputs import Input, draw, torch_dtype
from solbench.model.definition import DTYPE_BITS, TensorSpec, resolve_shape
from solbench.model.trace import Status

TIMEOUT_S = 120.0
MEMORY_BYTES = 4 << 30
# Where a float of one byte is declared, an oracle may return its code, and the other way round.
_CODES = frozenset({"uint8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"})


@dataclass(frozen=True)
class Verdict:
    """One workload, reduced where it is large: the oracle agrees, differs, or could not be compared, and why."""

    problem: str
    workload: str
    verdict: Literal["agrees", "differs", "not_compared"]
    detail: str = ""


def equivalence(corpus: Corpus, clone: Path, problems: Sequence[Problem]) -> list[Verdict]:
    """Compare references of the corpus with their tasks' oracles, on every workload of ``problems``.

    :class:`InputError` where the corpus, or one of these tasks in ``clone``, is not what the manifest pins.
    """
    require_pinned(corpus)
    entries = {entry.problem: entry for entry in corpus.manifest.entries}
    sources = [_oracle_source(corpus, entries[folder_name(corpus, problem)], clone) for problem in problems]
    return [verdict for problem, source in zip(problems, sources) for verdict in _compared(problem, source)]


def _oracle_source(corpus: Corpus, entry: Entry, clone: Path) -> bytes:
    """Bytes of the task's semantic reference, which are the pinned ones, as are the task's other artifacts."""
    changed = unbound(corpus.manifest, clone, [entry])
    artifact = entry.artifacts["semantic_reference"]
    data = artifact_bytes(clone, f"{entry.task}/{artifact.path}")
    if changed or data is None or not artifact.is_pinned(data):
        where, _, what = (changed or [f"{entry.task}: changed while it was read"])[0].partition(": ")
        raise InputError(str(clone / where), f"{what}; only pinned code is run")
    return data


def _compared(problem: Problem, source: bytes) -> list[Verdict]:
    instances = [reduced(problem.definition, workload) for workload in problem.workloads]
    rounds = [draw(item.definition, item.workload, item.axes, 0, folder=problem.path) for item in instances]
    with tempfile.TemporaryDirectory(prefix="solbench-oracle-") as name:
        folder = Path(name)
        (folder / "oracle.py").write_bytes(source)
        for number, inputs in enumerate(rounds):
            torch.save(dict(inputs), folder / f"inputs-{number}")
        found, fault = ask(
            "solbench.corpus.oracle:answers", {"cases": len(rounds)}, folder,
            timeout_s=TIMEOUT_S, memory_bytes=MEMORY_BYTES,
        )  # fmt: skip
        found += [{"reason": f"the oracle's process: {fault or 'gave no answer'}"}] * (len(rounds) - len(found))
        return [
            Verdict(problem.key, item.workload.uuid, *_judged(item, inputs, answer, folder, number))
            for number, (item, inputs, answer) in enumerate(zip(instances, rounds, found))
        ]


def _judged(
    item: Instance, inputs: Mapping[str, Input], answer: Any, folder: Path, number: int
) -> tuple[Literal["agrees", "differs", "not_compared"], str]:
    forms = answer.get("tensors") if isinstance(answer, dict) else None
    if not isinstance(forms, list):
        reason = answer.get("reason") if isinstance(answer, dict) else None
        return "not_compared", str(reason or "no answer").splitlines()[0][:300]
    specs = item.definition.outputs
    if len(forms) != len(specs):
        return "differs", f"the oracle returns {len(forms)} tensors, declared are {len(specs)}"
    actual = {}
    for position, (name, spec) in enumerate(specs.items()):
        tensor = _received(spec, item, forms[position], folder / f"output-{number}-{position}")
        if tensor is None:
            return "differs", f"{name}: the oracle's is {forms[position]}".splitlines()[0][:300]
        actual[name] = tensor
    expected = named_outputs(item.definition, load_reference(item.definition)(**inputs))
    status, why, results = check_outputs(item.definition, item.workload, item.axes, inputs, expected, actual)
    if status is Status.PASSED:
        return "agrees", item.note or ""
    return "differs", why or "; ".join(
        f"{result.output}: {result.mismatched} of {result.compared}" for result in results
    )


def _received(spec: TensorSpec, item: Instance, form: Any, path: Path) -> torch.Tensor | None:
    """A result from the bytes that the child left, in its declared dtype; None where its form is another."""
    shape, dtype = resolve_shape(spec, dict(item.axes)), torch_dtype(spec.dtype)
    if (
        not isinstance(form, list)
        or len(form) != 2
        or form[1] != list(shape)
        or form[0] not in _CODES | set(DTYPE_BITS)
    ):
        return None
    given = torch_dtype(form[0])
    if "uint8" in (form[0], spec.dtype) and {form[0], spec.dtype} <= _CODES:
        given = dtype
    if given != dtype and not (given.is_floating_point and dtype.is_floating_point):
        return None
    data = artifact_bytes(path.parent, path.name)
    if data is None or len(data) != given.itemsize * math.prod(shape):
        return None
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(given).reshape(shape).to(dtype)
