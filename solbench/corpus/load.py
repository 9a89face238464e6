"""Problems and solutions as files: reading them into contracts, with errors that name file and field.

A problem is a folder with ``problem.yaml`` (the Definition without its reference), ``reference.py`` and
``workloads.yaml``; SOL-ExecBench's ``definition.json`` with ``workload.jsonl`` reads as well. Nothing here runs code.
With ``defaults.yaml`` in place of ``workloads.yaml`` it is a definition only (:mod:`solbench.corpus.definitions`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.corpus.document import read_json, read_json_lines, read_text, read_yaml
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.solution import BASELINE, COMPILED, SUFFIXES, TARGETS, Solution, SourceFile
from solbench.model.workload import NumericCheck, Workload

WORKLOADS_SCHEMA = "solbench.workloads.v1"
_SHARED_FIELDS = ("inputs", "checks", "stress_rounds", "rejected_formats")


@dataclass(frozen=True)
class Problem:
    """A Definition with its Workloads (each valid against it) and the solutions kept beside it."""

    path: Path
    corpus: str
    definition: Definition
    workloads: tuple[Workload, ...]
    solutions: tuple[Solution, ...]

    @property
    def key(self) -> str:
        """``<corpus>/<suite>/<name>``, the problem's name in the store; without a suite ``<corpus>/<name>``."""
        return "/".join(part for part in (self.corpus, self.definition.suite, self.definition.name) if part)


def load_corpus(root: Path) -> list[Problem]:
    """Every problem below ``root`` (``problems/``), sorted by key; its folder must be its key.

    Definitions without workloads are left out on purpose: the corpus stage lists what a release bounds and measures.
    """
    if not root.is_dir():
        raise InputError(str(root), "no such folder")
    problems = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        path = Path(folder)
        if not {"problem.yaml", "definition.json"} & set(files):
            continue
        folders.clear()
        if "defaults.yaml" in files and "workloads.yaml" not in files:
            continue
        corpus = path.relative_to(root).parts[0] if path != root else root.name
        problem = load_problem(path, corpus=corpus)
        if problem.path != root and str(path.relative_to(root)) != problem.key:
            raise InputError(str(path), f"a problem's folder is <corpus>/<suite>/<name>, here {problem.key}")
        problems.append(problem)
    return sorted(problems, key=lambda problem: problem.key)


def find_problems(root: Path, names: Sequence[str], known: Sequence[Problem] | None = None) -> list[Problem]:
    """The problems of ``names``: a folder, or a key or the last part of one that is unique among ``known``, by default
    the problems below ``root``."""
    found: list[Problem] = []
    for name in names:
        if Path(name).is_dir():
            found.append(load_problem(Path(name)))
            continue
        known = load_corpus(root) if known is None else known
        matching = [problem for problem in known if problem.key == name or problem.key.endswith(f"/{name}")]
        if len(matching) != 1:
            keys = ", ".join(problem.key for problem in matching)
            what = f"is ambiguous: {keys}" if matching else "no such problem"
            raise InputError(name, f"{what}; `solbench corpus list` shows them")
        found += matching
    return found


def load_problem(path: Path, *, corpus: str | None = None) -> Problem:
    """One problem's folder. ``corpus`` defaults to the name of the folder above its suite."""
    path = Path(path)
    if not path.is_dir():
        raise InputError(str(path), "no such problem folder")
    if (path / "problem.yaml").exists() or not (path / "definition.json").exists():
        definition = load_definition(path)
        workloads = _load_workloads(path / "workloads.yaml", definition)
    else:
        definition = _load_definition_json(path)
        workloads = _load_workload_lines(path / "workload.jsonl", definition)
    if corpus is None:
        above = path.resolve().parent
        corpus = (above.parent if definition.suite == above.name else above).name or "problems"
    return Problem(path, corpus, definition, workloads, load_solutions(path, definition))


def load_solution(path: Path, definition: Definition) -> Solution:
    """A solution for ``definition``: a folder or ``solution.yaml`` / ``solution.json``, or one source file.

    A bare ``.py`` file is ``triton`` if it imports that, else ``pytorch``; a bare ``.cpp``, ``.hip`` or ``.cu`` file is
    ``cpp``, ``hip_cpp`` or ``cuda_cpp`` with binding ``c``; all export ``run``.
    """
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in ("solution.yaml", "solution.json") if (path / name).exists()]
        if len(found) != 1:
            raise InputError(str(path), "a solution's folder has exactly one of solution.yaml and solution.json")
        return load_solution(found[0], definition)
    if path.suffix == ".yaml":
        return _solution_of(read_yaml(path), path, definition)
    if path.suffix == ".json":
        return _solution_of(read_json(path), path, definition)
    return _bare_solution(path, definition)


def eager_solution(definition: Definition) -> Solution:
    """The reference itself as a solution: the baseline of every score."""
    fields = {
        "name": BASELINE,
        "definition": definition.name,
        "author": "solbench",
        "description": "The reference, run eagerly.",
        "spec": {"languages": ["pytorch"], "entry_point": "reference.py::run"},
        "sources": [{"path": "reference.py", "content": definition.reference}],
    }
    return Solution.load(fields, f"{definition.name}: {BASELINE}")


def load_definition(path: Path) -> Definition:
    """The Definition of a folder with ``problem.yaml`` and ``reference.py``."""
    where = path / "problem.yaml"
    fields = _mapping(read_yaml(where), str(where))
    if "reference" in fields:
        raise InputError(f"{where}: reference", "stands in reference.py, not here")
    return Definition.load({**fields, "reference": read_text(path / "reference.py")}, str(where))


def _load_definition_json(path: Path) -> Definition:
    where = path / "definition.json"
    fields = dict(_mapping(read_json(where), str(where)))
    if "reference" not in fields:
        fields["reference"] = read_text(path / "reference.py")
    if fields.get("op_type", "") is None:  # SOL-ExecBench lets it be null
        del fields["op_type"]
    return Definition.load(fields, str(where))


def _load_workloads(path: Path, definition: Definition) -> tuple[Workload, ...]:
    document = _mapping(read_yaml(path), str(path))
    _only(document, ("schema", "defaults", "workloads"), str(path))
    if document.get("schema") != WORKLOADS_SCHEMA:
        raise InputError(f"{path}: schema", f"must be {WORKLOADS_SCHEMA}")
    defaults = _mapping(document.get("defaults", {}), f"{path}: defaults")
    _only(defaults, _SHARED_FIELDS, f"{path}: defaults")
    entries = document.get("workloads")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: workloads", "must be a list of at least one workload")
    rows = []
    for number, entry in enumerate(entries):
        where = f"{path}: workloads[{number}]"
        fields = {**{name: defaults[name] for name in defaults if name != "inputs"}, **_mapping(entry, where)}
        fields["inputs"] = {
            **_mapping(defaults.get("inputs", {}), f"{path}: defaults.inputs"),
            **_mapping(fields.get("inputs", {}), f"{where}: inputs"),
        }
        rows.append((where, fields))
    return _workloads_of(rows, definition)


def _load_workload_lines(path: Path, definition: Definition) -> tuple[Workload, ...]:
    """SOL-ExecBench: one tolerance for all outputs becomes one numeric check an output."""
    rows = []
    for where, value in read_json_lines(path):
        fields = dict(_mapping(value, where))
        tolerance = {
            "max_atol": 1e-2, "max_rtol": 1e-2, "required_matched_ratio": 0.99, "max_error_cap": None,
            "allow_negative_inf": False,
        }  # fmt: skip
        given = _mapping(fields.pop("tolerance", None) or {}, f"{where}: tolerance")
        _only(given, tuple(tolerance), f"{where}: tolerance")
        tolerance.update(given)
        bounds = {"atol": tolerance.pop("max_atol"), "rtol": tolerance.pop("max_rtol"), **tolerance}
        checks = [{"type": "numeric", "output": output, **bounds} for output in definition.outputs]
        for check in checks:
            NumericCheck.load(check, f"{where}: tolerance")
        rows.append((where, {"checks": checks, **fields}))
    if not rows:
        raise InputError(str(path), "has no workload")
    return _workloads_of(rows, definition)


def _workloads_of(rows: list[tuple[str, dict[str, Any]]], definition: Definition) -> tuple[Workload, ...]:
    workloads, seen = [], set()
    for where, fields in rows:
        workload = Workload.load(fields, where)
        if workload.uuid in seen:
            raise InputError(f"{where}: uuid", f"{workload.uuid!r} occurs twice")
        seen.add(workload.uuid)
        workload.validate_against(definition, where)
        workloads.append(workload)
    return tuple(workloads)


def load_solutions(path: Path, definition: Definition) -> tuple[Solution, ...]:
    """The solutions kept beside a definition: one a folder below ``solutions/``, sorted by name; none without it."""
    folder = path / "solutions"
    if not folder.is_dir():
        return ()
    solutions = []
    for place in sorted(folder.iterdir()):
        if place.name.startswith((".", "__")):
            continue
        if place.is_symlink() or not place.is_dir():
            raise InputError(str(place), "solutions/ holds one folder a solution")
        if not any(place.iterdir()):  # git leaves empty folders behind
            continue
        solution = load_solution(place, definition)
        if solution.name != place.name or solution.name in (BASELINE, COMPILED):
            wanted = f"must be the folder's name (and not {BASELINE!r} or {COMPILED!r})"
            raise InputError(f"{place}: name", f"{wanted}, is {solution.name!r}")
        solutions.append(solution)
    return tuple(solutions)


def _solution_of(value: Any, path: Path, definition: Definition) -> Solution:
    """``sources``: texts in place ({path, content}), or names of files beside; absent: every file beside."""
    where = str(path)
    fields = {"definition": definition.name, **_mapping(value, where)}
    listed = fields.get("sources")
    if listed is None:
        listed = [name for name in _files_below(path.parent) if name != path.name]
    if not isinstance(listed, list):
        raise InputError(f"{where}: sources", "must be a list")
    fields["sources"] = [
        {"path": entry, "content": _source_text(path.parent, entry, f"{where}: sources")}
        if isinstance(entry, str)
        else entry
        for entry in listed
    ]
    solution = Solution.load(fields, where)
    if solution.definition != definition.name:
        raise InputError(f"{where}: definition", f"is {solution.definition!r}, but the problem is {definition.name!r}")
    return solution


def _source_text(folder: Path, name: str, where: str) -> str:
    SourceFile.load({"path": name, "content": "-"}, f"{where}: {name}")  # a plain relative path, before it is opened
    path = folder
    for part in name.split("/"):
        path = path / part
        if path.is_symlink():
            raise InputError(f"{where}: {name}", "leads through a symbolic link")
    return read_text(path)


def _files_below(folder: Path) -> list[str]:
    names = []
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        names += [(Path(top) / name).relative_to(folder).as_posix() for name in files if not name.startswith(".")]
    return sorted(names)


# Language of a bare source file by its suffix, and what it is taken to be written for.
_BARE = {
    ".py": ("pytorch", TARGETS), **{suffix: ("cpp", ("cpu",)) for suffix in SUFFIXES["cpp"]},
    ".hip": ("hip_cpp", tuple(name for name in TARGETS if name.startswith("gfx"))),
    ".cu": ("cuda_cpp", tuple(name for name in TARGETS if name.startswith("sm_"))),
}  # fmt: skip


# Also behind others: import torch, triton.
_IMPORTS_TRITON = re.compile(
    r"^[ \t]*(from|import([ \t]+[\w.]+([ \t]+as[ \t]+\w+)?[ \t]*,)*)[ \t]+triton\b", re.MULTILINE
)


def _bare_solution(path: Path, definition: Definition) -> Solution:
    language, targets = _BARE.get(path.suffix, (None, ()))
    if language is None:
        raise InputError(str(path), "is neither solution.yaml, solution.json, a .py, .cpp, .hip nor .cu file")
    text = read_text(path)
    if language == "pytorch" and _IMPORTS_TRITON.search(text):
        language = "triton"
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-") or "solution"
    fields = {
        "name": name,
        "definition": definition.name,
        "author": "unknown",
        "spec": {
            "languages": [language],
            "target_hardware": targets,
            "entry_point": f"{path.name}::run",
            "binding": None if path.suffix in SUFFIXES["pytorch"] else "c",
        },
        "sources": [{"path": path.name, "content": text}],
    }
    return Solution.load(fields, str(path))


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(where, "must be a mapping of fields")
    return value


def _only(value: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in value:
        if name not in known:
            raise InputError(f"{where}: {name}", f"unknown field; known are {', '.join(known)}")
