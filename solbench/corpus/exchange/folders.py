"""Foreign folders in, new folders out: nothing is followed, nothing is half written."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from solbench import canonical
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.corpus.load import WORKLOADS_SCHEMA, load_problem
from solbench.errors import InputError, UnsupportedError
from solbench.model.definition import SCHEMA, Definition
from solbench.model.solution import Solution
from solbench.model.workload import Workload
from solbench.release.paths import clashes, problems_of
from solbench.workspace import new_folder

MAX_FILES = 200_000
MAX_TENSOR_FILE_BYTES = 4 * 2**30
_OUR_FILES = ("problem.yaml", "reference.py", "workloads.yaml", "definition.json", "workload.jsonl", "solutions")


@dataclass(frozen=True)
class Item:
    """One problem on its way into a corpus; ``files``: path below the problem's folder -> where its bytes lie now."""

    definition: Definition
    workloads: tuple[Workload, ...]
    solutions: tuple[Solution, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """``<suite>/<name>``: where the problem stands in its corpus."""
        return "/".join(part for part in (self.definition.suite, self.definition.name) if part)


def files_below(root: Path) -> list[str]:
    """Sorted POSIX paths of every regular file; hidden ones are left out. A link or a device is :class:`InputError`."""
    if not root.is_dir():
        raise InputError(str(root), "no such folder")
    found: list[str] = []
    for top, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in (*folders, *names):
            path = Path(top) / name
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise InputError(str(path), "is a symbolic link; put the file itself here")
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                raise InputError(str(path), "is not a regular file")
        found += [(Path(top) / name).relative_to(root).as_posix() for name in names if not name.startswith(".")]
        if len(found) > MAX_FILES:
            raise InputError(str(root), f"holds more than {MAX_FILES} files")
    return sorted(found)


def plain_path(text: str, where: str) -> str:
    """``text`` as a path that stays below its folder (a leading ``./`` is dropped); else :class:`InputError`."""
    path = text
    while path.startswith("./"):
        path = path[2:]
    broken = next(problems_of(path), None)
    if broken is not None or any(part.startswith(".") or len(part) > 255 for part in path.split("/")):
        raise InputError(where, f"{text!r} is not a plain relative path ({broken or 'hidden, or too long'})")
    return path


def write_corpus(items: Sequence[Item], output: Path, notes: Notes) -> Carried:
    """Write every item as ``<output>/<suite>/<name>`` and read it back; what does not come back equal is refused."""
    if not items:
        first = next((f"; {note.where}: {note.what}" for note in notes.rows if note.kind == "unsupported"), "")
        raise UnsupportedError(f"{output}: not written, there is no problem to import{first}")
    folders = sorted(item.folder for item in items)
    for name in [*(a for a, b in pairwise(folders) if a == b), *(name for _, name in clashes(folders))]:
        raise InputError(name, "two problems have this name")
    with new_folder(output) as temporary:
        for item in items:
            _write_problem(temporary / item.folder, item)
    keys = tuple(sorted(f"{output.name}/{item.folder}" for item in items))
    solutions = sorted(f"{output.name}/{item.folder}: {solution.name}" for item in items for solution in item.solutions)
    return Carried(keys, tuple(solutions), 0, tuple(notes.rows))


def write_text(path: Path, text: str) -> None:
    """UTF-8, newlines as they are; :class:`InputError` for a second file of that name, and for a lone surrogate."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(text.encode("utf-8"))
    except FileExistsError:
        raise InputError(path.name, "two problems or solutions write a file of this name") from None
    except UnicodeEncodeError as error:
        raise InputError(path.name, f"character {error.start} has no UTF-8") from None


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file of bounded size; links are refused."""
    if source.is_symlink() or not source.is_file():
        raise InputError(str(source), "is not a regular file")
    if source.stat().st_size > MAX_TENSOR_FILE_BYTES:
        raise InputError(str(source), f"is longer than {MAX_TENSOR_FILE_BYTES} bytes")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target, follow_symlinks=False)
    target.chmod(0o644)


def _write_problem(folder: Path, item: Item) -> None:
    for code, name in clashes((*_OUR_FILES, *item.files)):
        raise InputError(f"{item.definition.name}: {name}", f"has the name of another file ({code})")
    if taken := {path.split("/")[0] for path in item.files} & set(_OUR_FILES):
        raise InputError(f"{item.definition.name}: {min(taken)}", "is the name of a file of the problem's own")
    definition = _plain(item.definition)
    del definition["reference"], definition["order"]
    write_text(folder / "problem.yaml", _yaml({"schema": SCHEMA, **definition}))
    write_text(folder / "reference.py", item.definition.reference)
    workloads = [_plain(workload) for workload in item.workloads]
    write_text(folder / "workloads.yaml", _yaml({"schema": WORKLOADS_SCHEMA, "workloads": workloads}))
    for solution in item.solutions:
        text = canonical.dumps(solution.as_dict()).decode()
        write_text(folder / "solutions" / solution.name / "solution.json", text + "\n")
    for name, source in item.files.items():
        copy_file(source, folder / name)
    written = load_problem(folder)
    by_name = sorted(item.solutions, key=lambda solution: solution.name)
    if (written.definition, written.workloads, sorted(written.solutions, key=lambda solution: solution.name)) != (
        item.definition,
        item.workloads,
        by_name,
    ):
        raise InputError(item.definition.name, "does not come back equal from the files written for it")


def _plain(record: Definition | Workload) -> dict[str, Any]:
    fields = record.model_dump(mode="json", exclude_defaults=True)
    fields.pop("schema", None)
    return fields


class _Dumper(yaml.SafeDumper):
    """Quotes every text but plain words, so that YAML 1.1 and 1.2 read the same."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    word = value.isidentifier() and value.isascii() and value.lower() not in _SWITCHES
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if word else '"')


_SWITCHES = frozenset({"yes", "no", "on", "off", "true", "false", "null"})
_Dumper.add_representer(str, _text)


def _yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=False)
