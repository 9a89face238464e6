"""What a corpus is bound to: the pinned revision it comes from, the artifacts there, and our own files, by digest.

``problems/<corpus>/manifest.yaml`` is data beside the problems, no problem itself; nothing here runs code or git.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import AfterValidator, Field, StringConstraints, model_validator

from solbench import canonical
from solbench.corpus.document import read_text, read_yaml
from solbench.corpus.load import Problem, load_corpus
from solbench.errors import InputError
from solbench.model.definition import Dtype
from solbench.model.record import DIGEST, Value

SCHEMA: Final = "solbench.corpus-manifest.v1"
FILES: Final = ("problem.yaml", "reference.py", "workloads.yaml")
ARTIFACTS: Final = ("config", "semantic_reference", "correctness_runner")
_HEADER = (
    "# What this corpus is bound to. `solbench corpus audit` checks it; `audit --pin` rewrites the digests of files.\n"
)


def _relative(path: str) -> str:
    if any(part in (".", "..") for part in path.split("/")):
        raise ValueError("is not a plain relative path")
    return path


Relative = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"), AfterValidator(_relative)]


class Origin(Value):
    """The repository that the tasks come from, at one revision."""

    project: str
    repository: str
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    license: str


class Target(Value):
    """Static rules of a target: dtypes that its tensors may have, bytes that inputs and outputs may take together."""

    dtypes: tuple[Dtype, ...]
    memory_bytes: int = Field(gt=0)


class Artifact(Value):
    """A file of the source, its path below the task."""

    path: Relative
    sha256: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]

    def is_pinned(self, data: bytes) -> bool:
        return self.sha256 == f"sha256:{hashlib.sha256(data).hexdigest()}"


class Entry(Value):
    """One problem: its folder below the corpus, its task, digests of its files and of the task's artifacts."""

    problem: Relative
    role: Literal["scored", "sentinel", "apart"]
    workloads: int = Field(gt=0)
    task: Relative
    files: dict[str, Annotated[str, StringConstraints(pattern=DIGEST)]]
    artifacts: dict[str, Artifact]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if set(self.files) != set(FILES) or set(self.artifacts) != set(ARTIFACTS):
            raise ValueError(f"{self.problem}: has one of each of {', '.join((*FILES, *ARTIFACTS))}")
        return self


class Manifest(Value):
    """``manifest.yaml`` of a corpus."""

    schema_: Literal["solbench.corpus-manifest.v1"] = Field(alias="schema")
    corpus: str
    source: Origin
    targets: dict[str, Target]
    entries: tuple[Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [entry.problem for entry in self.entries]
        if len(set(names)) != len(names):
            raise ValueError("entries: a problem occurs twice")
        return self

    @property
    def artifacts(self) -> Iterator[tuple[Entry, str, Artifact]]:
        """Every (entry, role, artifact), in the manifest's order."""
        return ((entry, role, entry.artifacts[role]) for entry in self.entries for role in ARTIFACTS)


@dataclass(frozen=True)
class Corpus:
    """A corpus with its manifest. ``problems`` are in the order of their keys."""

    folder: Path
    manifest: Manifest
    digest: str
    problems: tuple[Problem, ...]

    def counts(self) -> str:
        """Problems and workloads, all and scored: ``45 problems, 169 workloads; scored 43 / 163``."""
        scored = [problem for problem in self.problems if problem.definition.role == "scored"]
        total, part = (sum(len(problem.workloads) for problem in group) for group in (self.problems, scored))
        return f"{len(self.problems)} problems, {total} workloads; scored {len(scored)} / {part}"


def load_manifested(root: Path, name: str) -> Corpus:
    """The corpus ``name`` below ``root`` with its manifest; :class:`InputError` where one cannot be read."""
    folder = root / name
    path = folder / "manifest.yaml"
    if not folder.is_dir():
        raise InputError(str(folder), "no such corpus")
    if not path.exists():
        raise InputError(str(path), "no such file: this corpus is bound to no source")
    data = read_text(path).encode()
    manifest = Manifest.load(read_yaml(path), str(path))
    if manifest.corpus != name:
        raise InputError(f"{path}: corpus", f"is {manifest.corpus!r}, but the folder is {name}")
    problems = tuple(problem for problem in load_corpus(root) if problem.corpus == name)
    return Corpus(folder, manifest, canonical.digest(data), problems)


def differences(corpus: Corpus) -> list[str]:
    """Where the problems are not what the manifest says, one line each: file, and what differs."""
    manifest = corpus.manifest
    entries = {entry.problem: entry for entry in manifest.entries}
    problems = {problem.path.relative_to(corpus.folder).as_posix(): problem for problem in corpus.problems}
    found = [f"{corpus.folder / name}: is not in the manifest" for name in problems if name not in entries]
    for name, entry in entries.items():
        problem = problems.get(name)
        if problem is None:
            found.append(f"{corpus.folder / name}: is in the manifest, but not there")
            continue
        source = problem.definition.source
        facts = {
            "role": (problem.definition.role, entry.role),
            "workloads": (len(problem.workloads), entry.workloads),
            "source.project": (source and source.project, manifest.source.project),
            "source.revision": (source and source.revision, manifest.source.revision),
            "source.task": (source and source.task, entry.task),
        }
        found += [
            f"{problem.path}: {what} is {here}, the manifest says {there}"
            for what, (here, there) in facts.items()
            if here != there
        ]
        for file, digest in file_digests(problem.path).items():
            if digest != entry.files[file]:
                found.append(f"{problem.path / file}: is not the file that the manifest pins")
    return found


def require_pinned(corpus: Corpus) -> None:
    """:class:`InputError` with the first difference between the problems and their manifest."""
    found = differences(corpus)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        where, _, what = found[0].partition(": ")
        raise InputError(where, f"{what}{more}; `solbench corpus audit` lists all")


def file_digests(folder: Path) -> dict[str, str]:
    """Digest of each of a problem's :data:`FILES`."""
    return {name: canonical.digest(read_text(folder / name).encode()) for name in FILES}


def pinned(corpus: Corpus) -> bytes:
    """``manifest.yaml`` with the digests, roles and numbers of workloads that the problems have now.

    The set of problems, tasks and artifacts stays: :class:`InputError` where a problem came or went.
    """
    problems = {problem.path.relative_to(corpus.folder).as_posix(): problem for problem in corpus.problems}
    fields = corpus.manifest.as_dict()
    if set(problems) != {entry["problem"] for entry in fields["entries"]}:
        raise InputError(str(corpus.folder / "manifest.yaml"), "lists other problems than are there")
    for entry in fields["entries"]:
        problem = problems[entry["problem"]]
        entry |= {
            "role": problem.definition.role,
            "workloads": len(problem.workloads),
            "files": file_digests(problem.path),
        }
    return manifest_bytes(fields)


def manifest_bytes(fields: Mapping[str, Any]) -> bytes:
    """Bytes of a ``manifest.yaml`` with these fields."""
    return (_HEADER + yaml.safe_dump(dict(fields), sort_keys=False, width=1000)).encode()


def unbound(manifest: Manifest, clone: Path, entries: Sequence[Entry] | None = None) -> list[str]:
    """Artifacts that ``clone`` lacks or has otherwise, one line a file; of ``entries`` alone, if given."""
    found = []
    for entry, role, artifact in manifest.artifacts:
        if entries is not None and entry not in entries:
            continue
        name = f"{entry.task}/{artifact.path}"
        data = artifact_bytes(clone, name)
        if data is None:
            found.append(f"{name}: {entry.problem}'s {role} is not there")
        elif not artifact.is_pinned(data):
            found.append(f"{name}: {entry.problem}'s {role} is not the file that the manifest pins")
    return found


def artifact_bytes(clone: Path, name: str) -> bytes | None:
    """Bytes of a regular file of the clone; None where there is none, or where a symbolic link leads to it."""
    path = clone
    for part in name.split("/"):
        path = path / part
        if path.is_symlink():
            return None
    return path.read_bytes() if path.is_file() else None
