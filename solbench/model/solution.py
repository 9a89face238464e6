"""Candidate sources for one problem."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from solbench.model.record import NAME, Value

SCHEMA: Final = "solbench.solution.v1"
# The reference, run eagerly: the solution that every problem has, and that T_b is the time of.
BASELINE: Final = "eager"
# The reference through torch.compile: see solbench/corpus/compiled.py.
COMPILED: Final = "compile"

Language = Literal["pytorch", "triton", "hip_cpp", "cuda_cpp", "cpp"]
TARGETS = ("gfx1200", "gfx942", "sm_90", "cpu")
SUFFIXES = {
    "pytorch": (".py",), "triton": (".py",), "hip_cpp": (".hip", ".cpp", ".cc"),
    "cuda_cpp": (".cu", ".cpp", ".cc"), "cpp": (".cpp", ".cc", ".cxx"),
}  # fmt: skip
MAX_SOURCE_CHARS = 4 * 2**20
# Python imports these by itself at start-up; a source of that name would run before us.
START_UP_FILES = frozenset({"sitecustomize.py", "usercustomize.py", "conftest.py"})


class SourceFile(Value):
    """One file: a relative POSIX path below the solution's folder, and its text."""

    path: str
    content: str = Field(min_length=1, max_length=MAX_SOURCE_CHARS)

    @field_validator("path")
    @classmethod
    def _relative(cls, value: str) -> str:
        path = PurePosixPath(value)
        if not value or path.is_absolute() or "\\" in value or str(path) != value or value.startswith(("-", "~")):
            raise ValueError(f"{value!r} is not a plain relative path")
        if any(part in ("..", ".") or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", part) for part in path.parts):
            raise ValueError(f"{value!r} is not a plain relative path")
        if path.suffix == ".pth" or path.name in START_UP_FILES:
            raise ValueError(f"{value!r} is a start-up hook of the interpreter")
        return value


class CompileOptions(Value):
    """Flags beyond the defaults; checked against an allow-list when compiling."""

    cflags: tuple[str, ...] = ()
    hip_cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ld_flags: tuple[str, ...] = ()


class SolutionSpec(Value):
    """How to build and call it. ``cpp`` with binding ``c``: see docs of ``solbench evaluate`` for the signature."""

    languages: tuple[Language, ...] = Field(min_length=1)
    target_hardware: tuple[str, ...] = ("cpu",)
    entry_point: str
    dependencies: tuple[str, ...] = ()
    destination_passing_style: bool = False
    binding: Literal["torch", "c"] | None = None
    compile_options: CompileOptions = CompileOptions()

    @model_validator(mode="after")
    def _rules(self) -> Self:
        path, separator, function = self.entry_point.partition("::")
        if not separator or not path or not function.isidentifier():
            raise ValueError("entry_point: must be 'file::function'")
        if not any(path.endswith(suffix) for language in self.languages for suffix in SUFFIXES[language]):
            raise ValueError(f"entry_point: {path!r} does not fit the languages {', '.join(self.languages)}")
        python = {"pytorch", "triton"} & set(self.languages)
        if python and set(self.languages) - python:
            raise ValueError("languages: Python and native languages do not mix")
        return self


class Solution(Value):
    """Content-addressed: its digest covers everything that changes the binary or the call."""

    schema_: Literal["solbench.solution.v1"] = Field(SCHEMA, alias="schema")
    name: Annotated[str, StringConstraints(pattern=NAME)]
    definition: Annotated[str, StringConstraints(pattern=NAME)]
    author: str = Field(min_length=1)
    description: str | None = None
    spec: SolutionSpec
    sources: tuple[SourceFile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sources(self) -> Self:
        paths = [source.path for source in self.sources]
        if len({path.lower() for path in paths}) != len(paths):
            raise ValueError("sources: two files have the same path")
        entry = self.spec.entry_point.partition("::")[0]
        if entry not in paths:
            raise ValueError(f"spec.entry_point: no source {entry!r}")
        return self
