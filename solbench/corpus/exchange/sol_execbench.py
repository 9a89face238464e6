"""SOL-ExecBench folders: ``definition.json``, ``workload.jsonl``, and maybe ``reference.py`` and ``solution*.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from solbench.corpus.document import read_json, read_json_lines, read_text
from solbench.corpus.exchange.folders import Item, files_below, write_corpus, write_text
from solbench.corpus.exchange.form import SOL_EXECBENCH
from solbench.corpus.exchange.inward import definition_in, mapping, refuse_twins, solution_in, workloads_in
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.corpus.exchange.outward import outward, write_files
from solbench.corpus.exchange.traces import Observed
from solbench.corpus.load import Problem
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.record import NAME
from solbench.workspace import new_folder


def read_sol_execbench(source: Path, output: Path) -> Carried:
    """Every problem folder at or below ``source`` as a corpus in the new folder ``output``.

    The folder above a problem's names its suite. :class:`InputError` for what breaks a rule: nothing is written then.
    """
    notes, names = Notes(), files_below(source)
    folders = [PurePosixPath(name).parent.as_posix() for name in names if PurePosixPath(name).name == "definition.json"]
    if not folders:
        raise InputError(str(source), "holds no definition.json")
    items = [_item(source, folder, names, notes) for folder in folders]
    return write_corpus([item for item in items if item is not None], output, notes)


def _item(source: Path, folder: str, names: Sequence[str], notes: Notes) -> Item | None:
    path = source / folder
    where = folder if folder != "." else source.name
    suite = path.parent.name if folder != "." and "/" in folder else None
    if suite is not None and not re.fullmatch(NAME, suite):
        raise InputError(where, f"{suite!r} cannot name a suite")
    fields = mapping(read_json(path / "definition.json"), f"{path / 'definition.json'}")
    if (path / "reference.py").exists():
        text = read_text(path / "reference.py")
        if fields.setdefault("reference", text) != text:
            notes.loss(where, "reference.py: differs from the reference in definition.json, which is taken")
    definition = definition_in(fields, SOL_EXECBENCH, suite, where, notes)
    if definition is None:
        return None
    rows = [(row.replace(str(path), where, 1), value) for row, value in read_json_lines(path / "workload.jsonl")]
    workloads, files = workloads_in(rows, definition, SOL_EXECBENCH, path, where, notes)
    solutions, used = [], {"definition.json", "reference.py", "workload.jsonl", *files}
    prefix = "" if folder == "." else f"{folder}/"
    for name in [name.removeprefix(prefix) for name in names if name.startswith(prefix)]:
        if re.fullmatch(r"solution(_[^/]*)?\.json|solutions/[^/]+\.json", name):
            solution = solution_in(read_json(path / name), definition, SOL_EXECBENCH, f"{where}: {name}", notes)
            solutions += [solution] if solution else []
        elif name == "config.json":
            notes.loss(where, "config.json: settings of another harness; dropped")
        elif name not in used:
            notes.loss(where, f"{name}: is no file of the format; left behind")
    refuse_twins(solutions, where)
    return Item(definition, workloads, tuple(solutions), files) if workloads else None


def write_sol_execbench(problems: Sequence[Problem], traces: Sequence[Observed], output: Path, notes: Notes) -> Carried:
    """``problems``, their solutions and ``traces`` in SOL-ExecBench's form, in the new folder ``output``."""
    with new_folder(output) as root:
        exported = outward(problems, traces, SOL_EXECBENCH, notes)
        for one in exported:
            definition: Definition = one.problem.definition
            folder = root / "/".join(part for part in (definition.suite, definition.name) if part)
            write_text(folder / "definition.json", json.dumps(one.definition, indent=2) + "\n")
            write_text(folder / "reference.py", definition.reference)
            write_text(folder / "workload.jsonl", "".join(json.dumps(row) + "\n" for row in one.workloads))
            for solution in one.solutions:
                name = "solution.json" if len(one.solutions) == 1 else f"solutions/{solution['name']}.json"
                write_text(folder / name, json.dumps(solution, indent=2) + "\n")
            if one.traces:
                rows = [trace for _, trace in one.traces]
                write_text(folder / "traces.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
            write_files(one, {name: folder / name for name in one.files})
    return Carried(
        tuple(one.problem.key for one in exported),
        tuple(f"{one.problem.key}: {solution['name']}" for one in exported for solution in one.solutions),
        sum(len(one.traces) for one in exported),
        tuple(notes.rows),
    )
