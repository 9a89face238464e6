"""After an import: whose checks an output of zeros passes, tried on the first workload of each problem.

A tolerance that another system has for all problems alike may be larger than what a reference returns: 1e-2 is, for a
softmax over 4096 columns. The check stays as it came; a warning names it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from solbench.child import ask
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.corpus.load import load_problem
from solbench.corpus.reduce import Instance, reduced
from solbench.model.definition import storage_bytes

TIMEOUT_S = 30.0
MEMORY_BYTES = 4 << 30
# Inputs and outputs together: larger workloads are reduced, and are not tried if they stay larger.
LIMIT_BYTES = 64 << 20


def with_warnings(carried: Carried, output: Path) -> Carried:
    """``carried`` with a warning for each output whose check accepts zeros, and for each problem that ends its try.

    ``output``: the folder that was written. References are foreign code: they run in confined child processes.
    """
    notes, left, large = Notes(list(carried.notes)), list(carried.problems), 0
    while left:
        request = {"folders": [str(output.absolute().parent / key) for key in left]}
        with tempfile.TemporaryDirectory(prefix="solbench-zeros-") as folder:
            found, fault = ask(
                "solbench.corpus.exchange.zeros:answers", request, Path(folder),
                timeout_s=TIMEOUT_S * len(left), memory_bytes=MEMORY_BYTES, reads=map(Path, request["folders"]),
            )  # fmt: skip
        large += found.count(None)
        for key, said in zip(left, found):
            if said:
                notes.warning(key, str(said))
        left = left[len(found) :]
        if left:  # the process ended in the next one; what comes after gets a process of its own
            notes.warning(left.pop(0), f"its checks could not be tried with zeros ({fault or 'no answer'})")
    if large:
        what = f"{large} of {len(carried.problems)} problems: too large to try their checks with zeros at the import"
        notes.warning(output.name, what)
    return replace(carried, notes=tuple(notes.rows))


def answers(request: Mapping[str, Any], folder: Path) -> Iterator[str | None]:
    """In the child: what there is to warn of, for each of the request's folders; empty: nothing, None: too large."""
    for path in request["folders"]:
        try:
            yield _tried(Path(path))
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            yield f"its checks could not be tried with zeros ({text})"


def _tried(path: Path) -> str | None:
    import torch

    from solbench.checks import check_outputs
    from solbench.corpus.reference import load_reference, named_outputs
    from solbench.inputs import draw

    problem = load_problem(path)
    definition, workload = problem.definition, problem.workloads[0]
    case = Instance(definition, workload, workload.validate_against(definition, workload.uuid))
    if _bytes(case) > LIMIT_BYTES:
        case = reduced(definition, workload)
    if _bytes(case) > LIMIT_BYTES:
        return None
    inputs = draw(case.definition, case.workload, case.axes, 0, folder=path)
    given = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
    expected = named_outputs(case.definition, load_reference(case.definition)(**given))
    zeros = {name: torch.zeros_like(value) for name, value in expected.items()}
    _, _, results = check_outputs(case.definition, case.workload, case.axes, inputs, expected, zeros)
    wrong = [result.output for result in results if result.passed and expected[result.output].double().any()]
    where = f"(workload {workload.uuid}{f', {case.note}' if case.note else ''})"
    return f"{', '.join(wrong)}: its check accepts zeros {where}" if wrong else ""


def _bytes(case: Instance) -> int:
    specs = (*case.definition.inputs.values(), *case.definition.outputs.values())
    return sum(storage_bytes(spec, case.axes) for spec in specs)
