"""Recorded sets of HIP code: what a distribution's clang made of candidates, for machines that lack that clang.

``measurements/code/<name>/``: ``set.json``, canonical JSON, and beside it one raw file a code object and a text, named
by the 64 hexadecimal digits of its BLAKE3-256. A set is written once and never edited; where the same compiler is, it
is derived again and must be the same to the byte. Its bytes are a candidate's: reading one follows no link and takes
nothing that the set does not name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from solbench import canonical
from solbench.code.hip import (
    MAX_ASSEMBLY_BYTES,
    MAX_CODE_BYTES,
    compile_hip,
    kernel_names,
    toolchain,
)  # fmt: skip
from solbench.code.hip_code import HipCode, HipUnit
from solbench.code.plain_file import open_plain
from solbench.device import codeobject
from solbench.errors import InputError, IntegrityError, UnsupportedError
from solbench.evaluate.build import BuildFailure
from solbench.evaluate.identity import solution_digest
from solbench.model.record import DIGEST, NAME, Value
from solbench.model.solution import Solution
from solbench.model.trace import Status

SCHEMA: Final = "solbench.code-set.v1"
MANIFEST = "set.json"
MAX_MANIFEST_BYTES = 4 << 20
MAX_FILES = 4_096
MAX_BYTES = 512 << 20

Verdict = Literal["same", "differs", "stale", "other compiler", "no compiler"]


class _File(Value):
    digest: str = Field(pattern=DIGEST)
    size: int = Field(ge=1)

    @property
    def name(self) -> str:
        return self.digest.removeprefix("blake3:")


class _Unit(Value):
    source: str = Field(min_length=1)
    kernels: tuple[str, ...]
    code: _File
    assembly: _File


class _Entry(Value):
    problem: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,255}$")
    name: Annotated[str, StringConstraints(pattern=NAME)]
    solution: str = Field(pattern=DIGEST)
    flags: tuple[str, ...]
    units: tuple[_Unit, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[str, str]:
        return self.problem, self.name


class _Compiler(Value):
    compiler: str = Field(min_length=1)
    version: str = Field(min_length=1)
    program: str = Field(pattern=DIGEST)
    parts: str = Field(pattern=DIGEST)


class _Set(Value):
    """``solution``: digest of the ``solution`` artifact. Sorted by problem and name, without repetition."""

    kind: Literal["code-set"]
    schema_: Literal["solbench.code-set.v1"] = Field(SCHEMA, alias="schema")
    arch: Literal[codeobject.ARCHITECTURES]  # type: ignore[valid-type]
    compiler: _Compiler
    solutions: tuple[_Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rules(self) -> Self:
        keys = [entry.key for entry in self.solutions]
        if sorted(set(keys)) != keys:
            raise ValueError("solutions: sorted by problem and name, each once")
        return self


@dataclass(frozen=True)
class RecordedCode:
    """One solution of a set: its problem's key, its name, the digest of its artifact, and what it became."""

    problem: str
    name: str
    solution: str
    code: HipCode

    @property
    def key(self) -> tuple[str, str]:
        return self.problem, self.name


@dataclass(frozen=True)
class CodeSet:
    """``compiler``: as :func:`solbench.code.hip.toolchain` describes it. ``digest``: of ``set.json``."""

    arch: str
    compiler: dict[str, str]
    solutions: tuple[RecordedCode, ...]
    digest: str


@dataclass(frozen=True)
class Rederived:
    """What compiling one recorded solution again said; ``reason`` is None where it is the same."""

    problem: str
    name: str
    verdict: Verdict
    reason: str | None = None


def record(solutions: Sequence[tuple[str, Solution]], arch: str, folder: Path, timeout_s: float = 300.0) -> CodeSet:
    """Compile ``solutions`` (problem's key, solution) for ``arch``, each within ``timeout_s`` seconds, and write the
    set ``folder``, which must not exist: whole or not at all.

    :class:`UnsupportedError` without a compiler; :class:`InputError` for what does not compile.
    """
    if folder.exists() or folder.is_symlink():
        raise InputError(str(folder), "is there already; a recorded set is not written over, choose another name")
    files: dict[str, bytes] = {}
    entries = []
    compiler: dict[str, str] = {}
    for problem, solution in sorted(solutions, key=lambda item: (item[0], item[1].name)):
        where = f"{problem}: solution {solution.name}"
        try:
            built = compile_hip(solution, arch, timeout_s)
        except BuildFailure as failure:
            if failure.status is Status.UNSUPPORTED:
                raise UnsupportedError(f"{where}: {failure.reason}") from None
            raise InputError(where, f"does not compile for {arch}: {failure.reason}") from None
        compiler = built.compiler
        units = []
        for unit in built.units:
            described = {}
            for field, data in (("code", unit.code), ("assembly", unit.assembly.encode())):
                file = _File(digest=canonical.digest(data), size=len(data))
                files[file.name] = data
                described[field] = file.as_dict()
            units.append({"source": unit.source, "kernels": list(unit.kernels), **described})
        entries.append({
            "problem": problem, "name": solution.name, "solution": solution_digest(solution),
            "flags": list(built.flags), "units": units,
        })  # fmt: skip
    value = {"kind": "code-set", "schema": SCHEMA, "arch": arch, "compiler": compiler, "solutions": entries}
    files[MANIFEST] = canonical.dumps(_Set.load(value, str(folder)).as_dict())
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".code-", dir=folder.parent))
    try:
        for name, data in files.items():
            (temporary / name).write_bytes(data)
            (temporary / name).chmod(0o644)
        temporary.chmod(0o755)
        result = load(temporary)
        temporary.rename(folder)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(temporary)
    return result


def load(folder: Path) -> CodeSet:
    """Read a set and check all of it: the form of ``set.json``, that its files are there and no others, sizes, digests,
    and that each code object is for its architecture and holds the kernels that are named.

    :class:`InputError` where there is no set; :class:`IntegrityError` where one is not what it says.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise InputError(str(folder), "no recorded set of code: not a folder")
    where = str(folder / MANIFEST)
    data = _read(folder / MANIFEST, MAX_MANIFEST_BYTES, None)
    try:
        value = _Set.load(canonical.loads(data, where), where)
    except InputError as error:
        raise IntegrityError(str(error)) from None
    if canonical.dumps(value.as_dict()) != data:
        raise IntegrityError(f"{where}: fields are left out or spelled otherwise than they are written")
    _closed(folder, value)
    return CodeSet(
        value.arch, value.compiler.as_dict(), tuple(_recorded(folder, value, entry) for entry in value.solutions),
        canonical.digest(data),
    )  # fmt: skip


def rederive(
    recorded: CodeSet, solutions: Mapping[tuple[str, str], Solution], timeout_s: float = 300.0
) -> list[Rederived]:
    """Compile again what is recorded and compare every byte. ``solutions``: by problem's key and name, as they are now.

    ``same`` or ``differs``; ``stale`` where the solution has changed or gone; ``other compiler`` (named) and ``no
    compiler`` where this machine cannot say.
    """
    try:
        here = toolchain(recorded.arch)
    except BuildFailure as failure:
        return [Rederived(one.problem, one.name, "no compiler", failure.reason) for one in recorded.solutions]
    if here != recorded.compiler:
        reason = f"recorded with {_title(recorded.compiler)}; here is {_title(here)}"
        return [Rederived(one.problem, one.name, "other compiler", reason) for one in recorded.solutions]
    return [_rederived(recorded.arch, one, solutions.get(one.key), timeout_s) for one in recorded.solutions]


def _rederived(arch: str, one: RecordedCode, solution: Solution | None, timeout_s: float) -> Rederived:
    if solution is None:
        return Rederived(one.problem, one.name, "stale", "there is no such solution any more")
    if solution_digest(solution) != one.solution:
        return Rederived(one.problem, one.name, "stale", "the solution has changed since")
    try:
        built = compile_hip(solution, arch, timeout_s)
    except BuildFailure as failure:
        return Rederived(one.problem, one.name, "differs", f"does not compile: {failure.reason}")
    if built == one.code:
        return Rederived(one.problem, one.name, "same")
    parts = [
        f"{old.source}: {part}" for old, new in zip(one.code.units, built.units, strict=False)
        for part in ("source", "kernels", "code", "assembly") if getattr(old, part) != getattr(new, part)
    ]  # fmt: skip
    return Rederived(one.problem, one.name, "differs", ", ".join(parts) or "flags or number of sources")


def _recorded(folder: Path, value: _Set, entry: _Entry) -> RecordedCode:
    units = tuple(_unit(folder, value.arch, unit) for unit in entry.units)
    return RecordedCode(
        entry.problem, entry.name, entry.solution, HipCode(value.arch, units, value.compiler.as_dict(), entry.flags)
    )


def _unit(folder: Path, arch: str, unit: _Unit) -> HipUnit:
    code = _read(folder / unit.code.name, MAX_CODE_BYTES, unit.code)
    text = _read(folder / unit.assembly.name, MAX_ASSEMBLY_BYTES, unit.assembly)
    where = f"{folder}: {unit.source}"
    try:
        assembly = text.decode()
        built = codeobject.arch(code, where)
    except UnicodeDecodeError:
        raise IntegrityError(f"{where}: its assembly is not UTF-8") from None
    except (InputError, UnsupportedError) as error:
        raise IntegrityError(str(error)) from None
    if built != arch:
        raise IntegrityError(f"{where}: compiled for {built}, but the set is for {arch}")
    if kernel_names(assembly) != unit.kernels:
        raise IntegrityError(f"{where}: its assembly has other kernels than the set names")
    for kernel in unit.kernels:
        if f"\0{kernel}.kd\0".encode() not in code:
            raise IntegrityError(f"{where}: its code object has no kernel {kernel}")
    return HipUnit(unit.source, code, assembly, unit.kernels)


def _closed(folder: Path, value: _Set) -> None:
    """Every file of the set is there, and nothing else is."""
    named = {file.name: file for file in _files(value)}
    if len(named) > MAX_FILES or sum(file.size for file in named.values()) > MAX_BYTES:
        raise IntegrityError(f"{folder}: more than {MAX_FILES} files, or than {MAX_BYTES} bytes")
    there = {name for name in os.listdir(folder) if name != MANIFEST}
    for name in sorted(there - set(named)):
        raise IntegrityError(f"{folder}: {name!r} is not named in {MANIFEST}; remove it")
    for name in sorted(set(named) - there):
        raise IntegrityError(f"{folder}: {name} is missing")


def _files(value: _Set) -> Iterator[_File]:
    for entry in value.solutions:
        for unit in entry.units:
            yield unit.code
            yield unit.assembly


def _read(path: Path, most: int, file: _File | None) -> bytes:
    """Bytes of a plain file of at most ``most``, and of the size and digest of ``file``."""
    try:
        stream = open_plain(path)
    except OSError as error:
        raise IntegrityError(f"{path}: cannot be read as a plain file ({error.strerror})") from None
    with stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise IntegrityError(f"{path}: {size} bytes, more than {most}")
        if file is not None and size != file.size:
            raise IntegrityError(f"{path}: {size} bytes, expected {file.size}")
        data = stream.read(most + 1)
    if file is not None and canonical.digest(data) != file.digest:
        raise IntegrityError(f"{path}: digest is {canonical.digest(data)}, expected {file.digest}")
    return data


def _title(compiler: Mapping[str, str]) -> str:
    first = compiler["version"].partition("\n")[0]
    return f"{first} (program {compiler['program'][7:19]}, headers and library {compiler['parts'][7:19]})"
