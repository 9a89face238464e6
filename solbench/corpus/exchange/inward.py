"""Their records become ours. What breaks a rule is :class:`InputError`; what merely does not fit is noted."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from solbench.corpus.exchange.folders import plain_path
from solbench.corpus.exchange.form import NOT_HERE, Form
from solbench.corpus.exchange.notes import Notes
from solbench.corpus.exchange.tensors import check_tensor, stored_file
from solbench.errors import InputError, UnsupportedError
from solbench.model.definition import DTYPE_BITS, AxisConst, Definition
from solbench.model.expression import names_in
from solbench.model.solution import BASELINE, SUFFIXES, Solution, SourceFile
from solbench.model.workload import Safetensors, Workload

_NATIVE_DEFAULTS = {"cflags": [], "cuda_cflags": ["-O3", "--use_fast_math"], "ld_flags": ["-lcuda"]}


def mapping(value: Any, where: str) -> dict[str, Any]:
    """``value`` as a dictionary of fields; else :class:`InputError`."""
    if not isinstance(value, Mapping):
        raise InputError(where, "must be a mapping of fields")
    return dict(value)


def definition_in(value: Any, form: Form, suite: str | None, where: str, notes: Notes) -> Definition | None:
    """Their Definition as ours, in ``suite``; None, and a note, where a dtype or an output is beyond us."""
    fields = _known(mapping(value, where), form.definition_fields, where, notes)
    if fields.get("op_type") is None:
        fields["op_type"] = "other"
        notes.loss(where, "op_type: null becomes 'other'")
    for group in ("inputs", "outputs"):
        fields[group] = mapping(fields.get(group), f"{where}: {group}")
        for name, given in fields[group].items():
            place = f"{where}: {group}.{name}"
            spec = fields[group][name] = _known(mapping(given, place), ("shape", "dtype", "description"), place, notes)
            dtype = spec.get("dtype")
            if isinstance(dtype, str) and (dtype in NOT_HERE or dtype not in DTYPE_BITS):
                reason = NOT_HERE.get(dtype, f"known are {', '.join(sorted(set(DTYPE_BITS) - set(NOT_HERE)))}")
                notes.unsupported(where, f"{group}.{name}: dtype {dtype}: {reason}")
                return None
            if group == "outputs" and spec.get("shape") is None:
                notes.unsupported(where, f"outputs.{name}: a Python scalar as output; here an output is a tensor")
                return None
    fields["axes"] = _declared_before_use(mapping(fields.get("axes"), f"{where}: axes"), where)
    fields["suite"] = suite
    definition = Definition.load(fields, where)
    written = [
        name for name, spec in definition.inputs.items() if spec.shape is not None and name in _written(definition)
    ]
    if not written:
        return definition
    notes.warning(where, f"{', '.join(written)}: the reference writes to it; declared in_place")
    return Definition.load({**fields, "in_place": written}, where)


def workload_in(
    value: Any, definition: Definition, form: Form, base: Path, where: str, notes: Notes
) -> tuple[Workload, dict[str, Path]] | None:
    """Their Workload as ours, and the files that it needs from ``base``; None, and a note, where one cannot be had."""
    fields = _known(mapping(value, where), ("uuid", "axes", "inputs", "tolerance"), where, notes)
    tolerance = {**form.tolerance}
    for name, given in mapping(fields.pop("tolerance", None) or {}, f"{where}: tolerance").items():
        if name.startswith("_"):
            notes.loss(where, f"tolerance.{name}: is a remark; dropped")
            continue
        if name not in tolerance:
            raise InputError(f"{where}: tolerance.{name}", f"unknown field; known are {', '.join(tolerance)}")
        tolerance[name] = given
    bounds = {"atol": tolerance.pop("max_atol"), "rtol": tolerance.pop("max_rtol"), **tolerance}
    fields["checks"] = [{"type": "numeric", "output": output, **bounds} for output in definition.outputs]
    inputs: dict[str, Any] = {}
    for name, given in mapping(fields.get("inputs"), f"{where}: inputs").items():
        inputs[name] = mapping(given, f"{where}: inputs.{name}")
        if isinstance(path := inputs[name].get("path"), str):
            inputs[name]["path"] = plain_path(path, f"{where}: inputs.{name}.path")
    for name, spec in definition.inputs.items():
        if name not in inputs and name in _defaulted(definition.reference):
            notes.unsupported(where, f"inputs.{name}: is left to its default; here a workload gives every input")
            return None
        if spec.shape is None and name in inputs and inputs[name].get("type") == "custom":
            notes.unsupported(where, f"inputs.{name}: a Python scalar from the input function; here it is a constant")
            return None
    # Some workloads repeat constant axes.
    given = mapping(fields.get("axes"), f"{where}: axes")
    constants = {name: axis.value for name, axis in definition.axes.items() if isinstance(axis, AxisConst)}
    bound = {name: value for name, value in given.items() if (name, value) not in constants.items()}
    workload = Workload.load({**fields, "axes": bound, "inputs": inputs}, where)
    axes = workload.validate_against(definition, where)
    files: dict[str, Path] = {}
    for name, generator in workload.inputs.items():
        if not isinstance(generator, Safetensors):
            continue
        try:
            file = stored_file(base, generator.path, f"{where}: inputs.{name}")
            check_tensor(file, generator.tensor_key, definition.inputs[name], axes, f"{where}: inputs.{name}")
        except UnsupportedError as error:
            notes.unsupported(where, f"inputs.{name}: {error}")
            return None
        files[generator.path] = file
    return workload, files


def workloads_in(
    rows: list[tuple[str, Any]], definition: Definition, form: Form, base: Path, where: str, notes: Notes
) -> tuple[tuple[Workload, ...], dict[str, Path]]:
    """Every (where, workload) of a problem; none at all leaves the problem out, with a note."""
    found: dict[str, Workload] = {}
    files: dict[str, Path] = {}
    for row, value in rows:
        pair = workload_in(value, definition, form, base, row, notes)
        if pair is None:
            continue
        if pair[0].uuid in found:
            raise InputError(f"{row}: uuid", f"{pair[0].uuid!r} occurs twice")
        found[pair[0].uuid] = pair[0]
        files.update(pair[1])
    if not found:
        notes.unsupported(where, "has no workload that could be imported")
    return tuple(found.values()), files


def solution_in(value: Any, definition: Definition, form: Form, where: str, notes: Notes) -> Solution | None:
    """Their Solution as ours; None, and a note, where its language or binding is not ours."""
    fields = _known(
        mapping(value, where), ("name", "definition", "author", "description", "spec", "sources"), where, notes
    )
    spec = mapping(fields.get("spec"), f"{where}: spec")
    theirs = [spec.pop("language", None)] if "language" in spec else spec.get("languages")
    if not isinstance(theirs, list) or not theirs or not all(isinstance(language, str) for language in theirs):
        raise InputError(f"{where}: spec.languages", "must name languages")
    if not isinstance(fields.get("sources"), list):
        raise InputError(f"{where}: sources", "must be a list")
    for source in fields["sources"]:  # a hostile path is refused, whatever its language
        SourceFile.load(source, f"{where}: sources")
    foreign = [language for language in theirs if language not in form.languages]
    if foreign:
        notes.unsupported(where, f"language {', '.join(foreign)}: there is nothing here that builds it")
        return None
    languages = [form.languages[language] for language in theirs]
    native = not {"pytorch", "triton"} & set(languages)
    # Both formats pass the outputs unless told otherwise.
    spec.setdefault("destination_passing_style", True)
    binding = spec.get("binding", "tvm-ffi" if form.name == "flashinfer-trace" and native else None)
    if native and binding not in (None, "torch"):
        notes.unsupported(where, f"binding {binding}: native code is bound through torch here")
        return None
    if not native and binding is not None:
        notes.loss(where, f"spec.binding: {binding} has no meaning for Python sources")
        binding = None
    options = spec.get("compile_options")
    if native and form.name == "sol-execbench":
        options = {**_NATIVE_DEFAULTS, **mapping(options or {}, f"{where}: spec.compile_options")}
    spec = {**spec, "languages": languages, "binding": binding, "compile_options": options or {}}
    known = ("languages", "target_hardware", "entry_point", "dependencies", "destination_passing_style", "binding")
    spec = _known(spec, (*known, "compile_options"), f"{where}: spec", notes)
    entry = str(spec.get("entry_point")).partition("::")[0]
    if not any(entry.endswith(suffix) for language in languages for suffix in SUFFIXES[language]):
        notes.unsupported(where, f"entry point in {entry!r}: not a file of {', '.join(languages)} here")
        return None
    if fields.get("name") == BASELINE:
        notes.unsupported(where, "is named 'eager', which is the reference itself here")
        return None
    solution = Solution.load({**fields, "spec": spec}, where)
    if solution.definition != definition.name:
        raise InputError(f"{where}: definition", f"is {solution.definition!r}, the problem is {definition.name!r}")
    return solution


def _defaulted(reference: str) -> set[str]:
    """Parameters of ``run`` that have a default value."""
    for node in ast.parse(reference).body:
        if isinstance(node, ast.FunctionDef) and node.name == "run":
            names = [argument.arg for argument in node.args.args]
            return set(names[len(names) - len(node.args.defaults) :])
    return set()


def _written(definition: Definition) -> set[str]:
    """Parameters of ``run`` that it writes to by their name: ``x[...] = ``, ``x += ``, ``x.add_()``, ``out=x``.

    A name that is bound again may be another tensor by then, and a write through a view has another name: both are left
    to `corpus validate`, which compares inputs before and after.
    """
    run = next(node for node in ast.parse(definition.reference).body if _is_run(node))
    nodes = list(ast.walk(run))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    added = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    rebound = bound - {target.id for target in added if isinstance(target, ast.Name)}
    places: list[ast.expr] = [*added]
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            places.append(node)
        elif isinstance(node, ast.Call):
            places += [keyword.value for keyword in node.keywords if keyword.arg == "out"]
            if isinstance(node.func, ast.Attribute) and re.fullmatch(r"[a-z]\w*[^_]_", node.func.attr):
                places.append(node.func.value)
    return {name for place in places if (name := _root(place)) in definition.inputs and name not in rebound}


def _is_run(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "run"


def _root(place: ast.expr) -> str | None:
    """``x`` of ``x``, ``x[0]`` and ``x[0][1]``."""
    while isinstance(place, ast.Subscript):
        place = place.value
    return place.id if isinstance(place, ast.Name) else None


def _declared_before_use(axes: dict[str, Any], where: str) -> dict[str, Any]:
    """Theirs resolve computed axes after all others, ours in declared order: where it matters, those go last."""
    seen: set[str] = set()
    for name, axis in axes.items():
        expression = axis.get("expression") if isinstance(axis, Mapping) else None
        if isinstance(expression, str) and names_in(expression, f"{where}: axes.{name}") - seen:
            return dict(sorted(axes.items(), key=lambda item: isinstance(item[1], Mapping) and "expression" in item[1]))
        seen.add(name)
    return axes


def _known(fields: dict[str, Any], known: tuple[str, ...], where: str, notes: Notes) -> dict[str, Any]:
    """The known fields; each other one that says anything is a loss."""
    for name in fields.keys() - set(known):
        if fields[name] not in (None, False, [], {}):
            notes.loss(where, f"{name}: has no counterpart here; dropped")
    return {name: value for name, value in fields.items() if name in known}


def refuse_twins(solutions: Sequence[Solution], where: str) -> None:
    """:class:`InputError` where two solutions of a problem differ by case at most in their names."""
    names = [solution.name.casefold() for solution in solutions]
    for name in names:
        if names.count(name) > 1:
            raise InputError(where, f"two solutions have the name {name!r}")
