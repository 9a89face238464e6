"""FlashInfer-Trace data sets: ``definitions/``, ``workloads/``, ``solutions/``, ``traces/``, ``blob/`` below one."""

from __future__ import annotations

import filecmp
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from solbench.corpus.document import read_json, read_json_lines
from solbench.corpus.exchange.folders import Item, files_below, write_corpus, write_text
from solbench.corpus.exchange.form import FLASHINFER_TRACE, Form
from solbench.corpus.exchange.inward import definition_in, mapping, refuse_twins, solution_in, workloads_in
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.corpus.exchange.outward import Outward, folder_name, outward, write_files
from solbench.corpus.exchange.traces import Observed
from solbench.corpus.load import Problem
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.record import NAME
from solbench.workspace import new_folder

# Outputs that are random draws are compared as distributions there.
_STATISTICAL = "sampling"


def read_flashinfer_trace(source: Path, output: Path) -> Carried:
    """The data set at ``source`` as a corpus in the new folder ``output``, the kind of operation naming the suite.

    :class:`InputError` for what breaks a rule: nothing is written then.
    """
    notes, names = Notes(), files_below(source)
    groups: dict[str, list[str]] = {"definitions": [], "workloads": [], "solutions": [], "traces": [], "blob": []}
    for name in names:
        top = name.split("/")[0]
        if top in groups and "/" in name:
            groups[top].append(name)
        else:
            notes.loss(name, "is no file of the format; left behind")
    if not groups["definitions"]:
        raise InputError(str(source), "holds no definitions/")
    for name in groups["traces"]:
        notes.loss(name, "traces of another protocol are not imported")
    definitions: dict[str, Definition | None] = {}
    for name in groups["definitions"]:
        definition, title = _definition(source, name, notes)
        if title in definitions:
            raise InputError(f"{name}: name", f"{title!r} is defined twice")
        definitions[title] = definition
    rows = _rows(source, groups["workloads"], definitions, notes)
    solutions: dict[Any, list[tuple[str, Any]]] = {title: [] for title in definitions}
    for name in groups["solutions"]:
        value = mapping(read_json(source / name), name)
        # Their loader goes by this field; folders are a custom.
        if value.get("definition") in definitions:
            solutions[value["definition"]].append((name, value))
        else:
            notes.unsupported(name, "is a solution of no definition that is here")
    items = []
    for title, definition in definitions.items():
        if definition is None:
            continue
        form = _form(definition)
        workloads, files = workloads_in(rows.get(title, []), definition, form, source, title, notes)
        read = [solution_in(value, definition, form, path, notes) for path, value in solutions[title]]
        kept = tuple(solution for solution in read if solution)
        refuse_twins(kept, title)
        if workloads:
            notes.loss(title, "tolerance: is no part of these files; 1e-2 absolute plus 1e-2 relative, as one sum")
            items.append(Item(definition, workloads, kept, files))
    return write_corpus(items, output, notes)


def _form(definition: Definition) -> Form:
    """Their evaluator asks 95 % of the elements of a mixture of experts, all of them elsewhere."""
    if definition.op_type != "moe":
        return FLASHINFER_TRACE
    return replace(FLASHINFER_TRACE, tolerance={**FLASHINFER_TRACE.tolerance, "required_matched_ratio": 0.95})


def _definition(source: Path, name: str, notes: Notes) -> tuple[Definition | None, str]:
    if not name.endswith(".json"):
        raise InputError(name, "definitions/ holds JSON files")
    fields = mapping(read_json(source / name), name)
    kind, title = fields.get("op_type"), fields.get("name")
    if not isinstance(title, str):
        raise InputError(f"{name}: name", "must be text")
    for label, axis in mapping(fields.get("axes"), f"{name}: axes").items():
        if mapping(axis, f"{name}: axes.{label}").get("type") == "expr":
            raise InputError(f"{name}: axes.{label}", "is computed; this format has const and var axes only")
    if kind == _STATISTICAL:
        notes.unsupported(title, "its outputs are random draws; no check here compares distributions")
        return None, title
    suite = kind if isinstance(kind, str) and re.fullmatch(NAME, kind) else None
    return definition_in(fields, FLASHINFER_TRACE, suite, title, notes), title


def _rows(
    source: Path, names: Sequence[str], definitions: dict[str, Definition | None], notes: Notes
) -> dict[str, list[tuple[str, Any]]]:
    """(where, workload) of each definition: their workloads are traces without a solution."""
    rows: dict[str, list[tuple[str, Any]]] = {}
    for name in names:
        for number, (_, value) in enumerate(read_json_lines(source / name), start=1):
            where = f"{name}: row {number}"
            fields = mapping(value, where)
            if fields.get("solution") is not None or fields.get("evaluation") is not None:
                raise InputError(where, "is not a plain workload: it has a solution or an evaluation")
            title = fields.get("definition")
            if not isinstance(title, str):
                raise InputError(f"{where}: definition", "must be text")
            if title not in definitions:
                notes.unsupported(where, f"its definition {title!r} is not here")
                continue
            rows.setdefault(title, []).append((where, fields.get("workload")))
    return rows


def write_flashinfer_trace(
    problems: Sequence[Problem], traces: Sequence[Observed], output: Path, notes: Notes
) -> Carried:
    """``problems``, their solutions and the ``traces`` of them as one data set in the new folder ``output``."""
    with new_folder(output) as root:
        exported = outward(problems, traces, FLASHINFER_TRACE, notes)
        for one in exported:
            _write_one(root, one)
    return Carried(
        tuple(one.problem.key for one in exported),
        tuple(f"{one.problem.key}: {solution['name']}" for one in exported for solution in one.solutions),
        sum(len(one.traces) for one in exported),
        tuple(notes.rows),
    )


def _write_one(root: Path, one: Outward) -> None:
    name, kind = one.problem.definition.name, folder_name(one.problem.definition.op_type)
    write_text(root / "definitions" / kind / f"{name}.json", json.dumps(one.definition, indent=2) + "\n")
    rows = [
        {"definition": name, "workload": workload, "solution": None, "evaluation": None} for workload in one.workloads
    ]
    write_text(root / "workloads" / kind / f"{name}.jsonl", _lines(rows))
    for solution in one.solutions:
        folder = root / "solutions" / folder_name(solution["author"]) / kind / name
        write_text(folder / f"{solution['name']}.json", json.dumps(solution, indent=2) + "\n")
    for author in sorted({author for author, _ in one.traces}):
        rows = [trace for by, trace in one.traces if by == author]
        write_text(root / "traces" / folder_name(author) / kind / f"{name}.jsonl", _lines(rows))
    places = {path: root / path for path in one.files}
    for path, source in one.files.items():
        if not places[path].exists():
            continue
        if not isinstance(source, Path) or not filecmp.cmp(source, places[path], shallow=False):
            raise InputError(f"{name}: {path}", "another problem has another file of this name")
    write_files(one, places)


def _lines(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
