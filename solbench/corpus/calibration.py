"""Why a tolerance is what it is: how much of it right implementations used on a named processor, as committed data.

``problems/<corpus>/calibration/<suite>/<name>.yaml`` is measured by :mod:`solbench.corpus.calibrate` and bound to the
Definition, inputs and checks that it was measured for. Nothing rewrites it: what has changed is measured anew into a
new file. Errors differ by processor, so that a later run is compared within a factor, never for equality.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import Field, StringConstraints

from solbench import canonical
from solbench.corpus.definitions import Template, load_template
from solbench.corpus.document import read_yaml
from solbench.corpus.load import Problem
from solbench.errors import InputError
from solbench.model.record import Value
from solbench.model.workload import Workload

SCHEMA: Final = "solbench.calibration.v1"
FOLDER: Final = "calibration"
# A share on another processor, or of fewer draws, lies within this factor of the committed one.
FACTOR: Final = 4.0
# What a share below this says is the same on every processor: there is room. (A float32 GELU used 0.23 of its tolerance
# on one with AVX-512 and 0.05 on one without.)
ROOM: Final = 0.1
# A larger share is written as this one; an infinite one (a NaN, a difference where none is allowed) as well.
LARGEST_SHARE: Final = 1e6
_HEADER = "# Measured by `solbench corpus calibrate`, re-checked by `corpus validate --controls`; not edited.\n"

Share = Annotated[float, Field(ge=0, le=LARGEST_SHARE)]


class Measured(Value):
    """One instance: a workload at all its axes; ``note`` says what was reduced, null if nothing was."""

    workload: str
    axes: dict[str, int]
    note: str | None = None


class Step(Value):
    """What one rounding step of the output's dtype uses of its tolerance, at most."""

    output: str
    share: Share


class Used(Value):
    """Shares of an output's tolerance that a variant used: the smallest and largest of the instances and seeds, each
    that of the worst element. ``required``: the checks have to pass it, on every seed. The others, on the first seed,
    show where the tolerance ends."""

    output: str
    variant: str
    required: bool
    least: Share
    most: Share


class Calibration(Value):
    """The evidence behind the tolerances of one problem."""

    schema_: Literal["solbench.calibration.v1"] = Field(SCHEMA, alias="schema")
    problem: str
    basis: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    processor: str
    torch: str
    threads: int = Field(gt=0)
    seeds: tuple[int, ...] = Field(min_length=1)
    instances: tuple[Measured, ...]
    steps: tuple[Step, ...]
    used: tuple[Used, ...]

    @property
    def required(self) -> Iterator[Used]:
        """What the variants used that have to pass."""
        return (row for row in self.used if row.required)


def basis(problem: Problem | Template) -> str:
    """Identity of what a calibration holds for: what is computed, from which inputs, under which checks."""
    if isinstance(problem, Problem) and _is_generated(problem):
        problem = load_template(problem.path, corpus=problem.corpus)
    definition = problem.definition.as_dict()
    decides = {name: definition[name] for name in ("axes", "inputs", "outputs", "reference")}
    if isinstance(problem, Template):
        drawn: Any = {name: problem.shared[name] for name in ("inputs", "checks")}
    else:
        drawn = [_fields(workload, "uuid", "axes", "inputs", "checks") for workload in problem.workloads]
    return canonical.derived_key("calibration basis", {"definition": decides, "drawn": drawn})


def _is_generated(problem: Problem) -> bool:
    return (problem.path / "defaults.yaml").is_file() and not (problem.path / "workloads.yaml").exists()


def _fields(workload: Workload, *names: str) -> dict[str, Any]:
    fields = workload.as_dict()
    return {name: fields[name] for name in names}


def tolerant_outputs(problem: Problem | Template) -> list[str]:
    """Outputs whose check has a tolerance, sorted: all but the exact ones."""
    if isinstance(problem, Template):
        checks = list(problem.shared["checks"])
    else:
        checks = [check for workload in problem.workloads for check in workload.as_dict()["checks"]]
    fields = ("output", "weights_output", "ids_output")
    return sorted({c[name] for c in checks if c["type"] != "exact" for name in fields if name in c})


def calibration_path(corpus: Path, problem: Problem | Template) -> Path:
    """Where the calibration of a problem lies in the folder of its corpus."""
    return corpus / FOLDER / (problem.definition.suite or "") / f"{problem.definition.name}.yaml"


def load_calibration(problem: Problem | Template) -> Calibration | None:
    """The committed calibration; None in a corpus that keeps none, and for a problem without a tolerance.

    :class:`InputError` in one line, with the command to run, where a corpus keeps calibrations and this one is
    missing, was measured for another Definition, other inputs or other checks, or lacks an output.
    """
    above = problem.path.resolve().parent
    corpus = above.parent if problem.definition.suite else above
    outputs = tolerant_outputs(problem)
    if not (corpus / FOLDER).is_dir() or not outputs:
        return None
    path = calibration_path(corpus, problem)
    command = f"run `solbench corpus calibrate {problem.key} --output {corpus.parent.name}`"
    if not path.exists():
        raise InputError(str(path), f"is missing; {command}")
    found = Calibration.load(read_yaml(path), str(path))
    if found.problem != problem.key or found.basis != basis(problem):
        raise InputError(str(path), f"was measured for another definition or other checks; delete it and {command}")
    if sorted({row.output for row in found.required}) != outputs:
        raise InputError(str(path), f"has not just the outputs {', '.join(outputs)}; delete it and {command}")
    return found


def require_new(path: Path) -> None:
    """:class:`InputError` where the file exists: a calibration is not rewritten."""
    if path.exists() or path.is_symlink():
        raise InputError(str(path), "exists already; delete it or name another folder")


def write_calibration(calibration: Calibration, path: Path) -> None:
    """Write a new file, one entry a line; :class:`InputError` where it exists."""
    require_new(path)
    lines = [_HEADER]
    for name, value in calibration.model_dump(mode="json", exclude_none=True).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{name}:\n", *(f"  - {_flow(entry)}" for entry in value)]
        else:
            lines.append(f"{name}: {_flow(value)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=10**6)
    return text.removesuffix("...\n")


def compare(
    calibration: Calibration, shares: Mapping[tuple[str, str], float], steps: Mapping[str, float]
) -> list[tuple[str, bool, str]]:
    """A new run of the required variants against the committed one, one an output and variant: (what, whether it holds,
    why not).

    ``shares``: the largest, by (output, variant); ``steps``: by output. Shares below one rounding step of the output,
    or below :data:`ROOM`, all say the same.
    """
    committed = {(row.output, row.variant): row.most for row in calibration.required}
    found = []
    for output, variant in sorted(shares.keys() | committed.keys()):
        share, known = shares.get((output, variant)), committed.get((output, variant))
        text = ""
        if share is None or known is None:
            text = "was not run" if share is None else "is not in the committed calibration"
        elif share > 1:
            text = f"uses {share:.2g} of the tolerance, {known:.2g} when calibrated"
        else:
            low, high = sorted(max(value, steps.get(output, 0.0), ROOM) for value in (share, known))
            if high > FACTOR * low:
                text = (
                    f"uses {share:.2g} of the tolerance, {known:.2g} when calibrated: more than {FACTOR:g}-fold apart"
                )
        found.append((f"{output}: calibrated share of {variant}", not text, text))
    return found
