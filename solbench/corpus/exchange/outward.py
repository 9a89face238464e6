"""Our records become theirs: values kept, each thing that their form cannot say is noted."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.corpus.exchange.folders import copy_file
from solbench.corpus.exchange.form import NOT_HERE, Form
from solbench.corpus.exchange.notes import Notes
from solbench.corpus.exchange.traces import Observed, trace_out
from solbench.corpus.load import Problem
from solbench.errors import InputError, UnsupportedError
from solbench.model.definition import AxisExpr, Definition, TensorSpec, storage_bytes
from solbench.model.expression import evaluate
from solbench.model.solution import Solution
from solbench.model.workload import (
    Constant,
    Custom,
    Generator,
    Normal,
    NumericCheck,
    Random,
    Safetensors,
    ScalarInput,
    Workload,
)  # fmt: skip

MAX_FROZEN_BYTES = 256 * 2**20
FROZEN_SEED = 0
_SOL_TARGETS = ("B200", "LOCAL")


@dataclass(frozen=True)
class Frozen:
    """One draw of some inputs of a workload, to be written as a safetensors file: it stands for their generators."""

    workload: Workload
    axes: Mapping[str, int]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Outward:
    """One problem in their form. ``files``: path below the problem -> the file to copy, or what to draw."""

    problem: Problem
    definition: dict[str, Any]
    workloads: tuple[dict[str, Any], ...]
    solutions: tuple[dict[str, Any], ...]
    traces: tuple[tuple[str, dict[str, Any]], ...]
    files: Mapping[str, Path | Frozen]


def outward(problems: Sequence[Problem], traces: Sequence[Observed], form: Form, notes: Notes) -> list[Outward]:
    """Every problem that fits ``form``; :class:`UnsupportedError` if none does."""
    found = []
    for problem in problems:
        one = _problem(problem, [seen for seen in traces if seen.about(problem)], form, notes)
        if one is not None:
            found.append(one)
    for seen in traces:
        if not any(seen.about(problem) for problem in problems):
            notes.unsupported(seen.problem or seen.trace.definition, "traces of a problem that is not exported")
    if not found:
        first = next((f"; {note.where}: {note.what}" for note in notes.rows), "")
        raise UnsupportedError(f"not written, there is no problem that {form.name} can express{first}")
    return found


def write_files(one: Outward, places: Mapping[str, Path]) -> None:
    """Write the files of an exported problem to their ``places``; a frozen draw needs PyTorch and runs the reference's
    input function where there is one."""
    for name, source in one.files.items():
        if isinstance(source, Path):
            copy_file(source, places[name])
        else:
            _write_frozen(one.problem, source, places[name])


def _write_frozen(problem: Problem, frozen: Frozen, path: Path) -> None:
    from safetensors.torch import save_file  # PyTorch: only a frozen draw needs it

    from solbench.inputs import draw

    definition, wanted = problem.definition, set(frozen.names)
    # Each input has a generator of its own: drawn alone it has the values that it has among all. Scalars go along,
    # for the reference's input function takes them.
    specs = {name: spec for name, spec in definition.inputs.items() if name in wanted or spec.shape is None}
    drawn = draw(definition.model_copy(update={"inputs": specs}), frozen.workload, frozen.axes, FROZEN_SEED)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: drawn[name] for name in frozen.names}, path)
    path.chmod(0o644)


def _problem(problem: Problem, traces: list[Observed], form: Form, notes: Notes) -> Outward | None:
    definition, where = problem.definition, problem.key
    for name, spec in {**definition.inputs, **definition.outputs}.items():
        if spec.dtype not in form.dtypes or spec.dtype in NOT_HERE:
            notes.unsupported(where, f"{name}: {form.name} has no dtype {spec.dtype}")
            return None
    pairs: list[tuple[Workload, dict[str, Any]]] = []
    files: dict[str, Path | Frozen] = {}
    for workload in problem.workloads:
        row = _workload(problem, workload, form, files, notes)
        if row is not None:
            pairs.append((workload, row))
    if not pairs:
        notes.unsupported(where, "has no workload that could be exported")
        return None
    rows = {workload.uuid: row for workload, row in pairs}
    solutions = [_solution(solution, form, f"{where}: {solution.name}", notes) for solution in problem.solutions]
    exported = [trace_out(seen, rows, problem, form.name, notes) for seen in traces]
    known = {solution["name"] for solution in solutions if solution}
    for name in sorted({trace["solution"] for _, trace in filter(None, exported)} - known):
        notes.loss(where, f"traces: of solution {name}, which is not exported itself")
    return Outward(
        problem,
        _definition(definition, form, where, notes),
        tuple(rows.values()),
        tuple(solution for solution in solutions if solution),
        tuple(trace for trace in exported if trace),
        files,
    )


def _definition(definition: Definition, form: Form, where: str, notes: Notes) -> dict[str, Any]:
    fields = {
        name: value
        for name, value in definition.model_dump(mode="json").items()
        if name in form.definition_fields and value is not None
    }
    fields["axes"] = {
        name: {
            key: value
            for key, value in ({"type": "var"} if _bound(axis, form) else axis.model_dump(mode="json")).items()
            if value is not None
        }
        for name, axis in definition.axes.items()
    }
    for name, axis in definition.axes.items():
        if _bound(axis, form):
            notes.loss(where, f"axes.{name}: an expression that cannot be said there; each workload binds its value")
    for group, specs in (("inputs", definition.inputs), ("outputs", definition.outputs)):
        fields[group] = {name: _spec(spec) for name, spec in specs.items()}
        if any(spec.role for spec in specs.values()):
            notes.loss(where, f"{group}: roles of tensors have no counterpart; dropped")
    plain = Definition.model_fields
    own = ("role", "source", "in_place", "persistent", "destination_passing_style", "hf_id", "custom_inputs_entrypoint")
    for name in own:
        value = getattr(definition, name)
        if name not in form.definition_fields and value != plain[name].default:
            notes.loss(where, f"{name}: has no counterpart; dropped")
    if form.name == "flashinfer-trace" and definition.suite not in (None, definition.op_type):
        notes.loss(where, f"suite: {definition.suite} gives way to the kind of operation")
    return fields


def _spec(spec: TensorSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {"shape": None if spec.shape is None else list(spec.shape), "dtype": spec.dtype}
    return {**fields, "description": spec.description} if spec.description is not None else fields


def _bound(axis: object, form: Form) -> bool:
    """Whether a computed axis must become one that workloads bind."""
    if not isinstance(axis, AxisExpr):
        return False
    calls = any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(axis.expression, mode="eval")))
    return calls or not form.expressions


def _workload(
    problem: Problem, workload: Workload, form: Form, files: dict[str, Path | Frozen], notes: Notes
) -> dict[str, Any] | None:
    definition, where = problem.definition, f"{problem.key}: {workload.uuid}"
    axes = definition.resolve_axes(workload.axes, where)
    bound = {name: axes[name] for name, axis in definition.axes.items() if _bound(axis, form)}
    all_custom = form.custom and all(isinstance(generator, Custom) for generator in workload.inputs.values())
    inputs: dict[str, dict[str, Any]] = {}
    own = _place(problem, f"inputs/{workload.uuid}.safetensors", form)
    frozen: list[str] = []
    for name, spec in definition.inputs.items():
        generator = workload.inputs[name]
        row = {"type": "custom"} if all_custom else _input(generator, spec, f"{where}: inputs.{name}", notes)
        if row is None:
            if storage_bytes(spec, axes) > MAX_FROZEN_BYTES:
                what = f"{generator.type} has no counterpart, and a draw of it is longer than {MAX_FROZEN_BYTES} bytes"
                notes.unsupported(where, f"inputs.{name}: {what}")
                return None
            frozen.append(name)
            row = {"type": "safetensors", "path": own, "tensor_key": name}
            notes.loss(where, f"inputs.{name}: {generator.type} has no counterpart; one draw of it is frozen")
        elif isinstance(generator, Safetensors):
            row["path"] = _place(problem, generator.path, form)
            files[row["path"]] = problem.path / generator.path
        inputs[name] = row
    if frozen:
        if own in files:
            raise InputError(f"{where}: {own}", "is needed for a frozen draw, and is a file of the problem's own")
        files[own] = Frozen(workload, axes, tuple(frozen))
    for field in ("stress_rounds", "rejected_formats"):
        if getattr(workload, field):
            notes.loss(where, f"{field}: has no counterpart; dropped")
    row = {"uuid": workload.uuid, "axes": {**workload.axes, **bound}, "inputs": inputs}
    tolerance = _tolerance(workload, axes, form, where, notes)
    return {**row, "tolerance": tolerance} if form.workload_tolerance else row


def folder_name(text: str) -> str:
    """``text`` as the name of one folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).lstrip("._-")[:100] or "other"


def _place(problem: Problem, path: str, form: Form) -> str:
    """Where a file of a problem lies: below the problem, or in the ``blob/`` that a data set's problems share."""
    if form.name != "flashinfer-trace" or path.startswith("blob/"):
        return path
    return f"blob/workloads/{folder_name(problem.definition.op_type)}/{problem.definition.name}/{path}"


def _input(generator: Generator, spec: TensorSpec, where: str, notes: Notes) -> dict[str, Any] | None:
    """Their generator for ours; None where only values say the same."""
    if isinstance(generator, (Random, Safetensors)):
        return generator.model_dump(mode="json")
    if spec.shape is None and isinstance(generator, (Constant, ScalarInput)):
        return {"type": "scalar", "value": generator.value}
    if isinstance(generator, Normal) and generator.mean == 0 and spec.dtype.startswith(("float", "bfloat")):
        notes.loss(where, f"normal with std {generator.std} becomes their random draw, which goes by the input's name")
        return {"type": "random"}
    return None


def _tolerance(workload: Workload, axes: Mapping[str, int], form: Form, where: str, notes: Notes) -> dict[str, Any]:
    """One tolerance for all outputs, the loosest of theirs: it refuses nothing that our checks accept."""
    stated = []
    for check in workload.checks:
        if not isinstance(check, NumericCheck) or check.mode != "elementwise":
            notes.loss(where, f"checks: {check.type} has no counterpart; a tolerance of elements stands for it")
        if isinstance(check, NumericCheck):
            low = {"max_atol": evaluate(check.atol, axes, where), "max_rtol": evaluate(check.rtol, axes, where)}
            rest = ("required_matched_ratio", "max_error_cap", "allow_negative_inf")
            stated.append({**low, **{name: getattr(check, name) for name in rest}})
    if not stated:
        return {**form.tolerance}
    if any(tolerance != stated[0] for tolerance in stated):
        notes.loss(where, "checks: their outputs share one tolerance; the loosest of ours is given")
    caps = [tolerance["max_error_cap"] for tolerance in stated]
    chosen = {
        "max_atol": max(tolerance["max_atol"] for tolerance in stated),
        "max_rtol": max(tolerance["max_rtol"] for tolerance in stated),
        "required_matched_ratio": min(tolerance["required_matched_ratio"] for tolerance in stated),
        "max_error_cap": None if None in caps else max(caps),
        "allow_negative_inf": any(tolerance["allow_negative_inf"] for tolerance in stated),
    }
    if not form.workload_tolerance and chosen != form.tolerance:
        notes.loss(where, "checks: a workload states no tolerance there; dropped")
    return chosen


def _solution(solution: Solution, form: Form, where: str, notes: Notes) -> dict[str, Any] | None:
    theirs = {ours: name for name, ours in form.languages.items()}
    spec = solution.spec
    foreign = [language for language in spec.languages if language not in theirs]
    if foreign or spec.binding == "c":
        what = f"language {', '.join(foreign)}" if foreign else "binding c"
        notes.unsupported(where, f"{what}: {form.name} has none")
        return None
    languages = [theirs[language] for language in spec.languages]
    flags = {name: list(getattr(spec.compile_options, name)) for name in ("cflags", "cuda_cflags", "ld_flags")}
    native = not {"pytorch", "triton"} & set(spec.languages)
    out: dict[str, Any] = {
        "languages": languages,
        "target_hardware": list(spec.target_hardware),
        "entry_point": spec.entry_point,
        "dependencies": list(spec.dependencies),
        "destination_passing_style": spec.destination_passing_style,
        "binding": spec.binding,
    }
    lost = {"hip_cflags": spec.compile_options.hip_cflags}
    if form.name == "sol-execbench":
        out["compile_options"] = flags if native or any(flags.values()) else None
        out["target_hardware"] = [name for name in spec.target_hardware if name in _SOL_TARGETS] or ["LOCAL"]
        if out["target_hardware"] != list(spec.target_hardware):
            notes.loss(where, f"spec.target_hardware: {', '.join(spec.target_hardware)} become LOCAL")
    else:
        lost.update({name: tuple(value) for name, value in flags.items()})
        # Triton kernels are called from Python: the narrower word covers both.
        out = {"language": "triton" if "triton" in languages else languages[0], **out}
        del out["languages"]
        if len(languages) > 1:
            notes.loss(where, f"spec.languages: of {', '.join(languages)} only {out['language']} is named")
        if native:
            out["binding"] = "torch"  # their default is another one
        else:
            del out["binding"]
    for name, value in lost.items():
        if value:
            notes.loss(where, f"spec.compile_options.{name}: has no counterpart; dropped")
    fields = {"name": solution.name, "definition": solution.definition, "author": solution.author}
    if solution.description is not None:
        fields["description"] = solution.description
    return {**fields, "spec": out, "sources": [source.as_dict() for source in solution.sources]}
