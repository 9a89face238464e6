"""Recorded sets of HIP code: written whole or not at all, and nothing of one that was touched is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solbench import canonical
from solbench.code import recorded
from solbench.code.hip_code import HipCode, HipUnit
from solbench.code.recorded import MANIFEST, CodeSet, load, record, rederive
from solbench.corpus.load import load_problem
from solbench.errors import InputError, IntegrityError, UnsupportedError
from solbench.evaluate.build import BuildFailure
from solbench.evaluate.identity import solution_digest
from solbench.model.solution import Solution
from solbench.model.trace import Status
from tests.solbench.code.test_hip import needs_compiler, solution
from tests.solbench.device.elf_files import code_object

ROOT = Path(__file__).resolve().parents[3]
COMPILER = {
    "compiler": "clang++-22",
    "version": "some clang version 22\nTarget: x86_64",
    "program": canonical.digest(b"program"),
    "parts": canonical.digest(b"parts"),
}


def unit(name: str, arch: str = "gfx1200") -> HipUnit:
    code = code_object(arch) + f"\0{name}.kd\0".encode()
    return HipUnit("main.hip", code, f"\t.amdhsa_kernel {name}\n", (name,))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, HipCode]:
    """What the compiler makes, by the name of the solution; the tests change it."""
    made = {name: HipCode("gfx1200", (unit(f"_Z1{name}v"),), dict(COMPILER), ("-O3",)) for name in "ab"}

    def compile_hip(candidate: Solution, arch: str, timeout_s: float) -> HipCode:
        return made[candidate.name]

    monkeypatch.setattr(recorded, "compile_hip", compile_hip)
    monkeypatch.setattr(recorded, "toolchain", lambda arch: dict(COMPILER))
    return made


def named(name: str) -> Solution:
    return Solution.load({**solution().as_dict(), "name": name}, "test")


SOLUTIONS = [("T/one/p", named("b")), ("T/one/p", named("a"))]
BY_KEY = {("T/one/p", name): named(name) for name in "ab"}


@pytest.fixture
def folder(compiled: dict[str, HipCode], tmp_path: Path) -> Path:
    record(SOLUTIONS, "gfx1200", tmp_path / "code" / "set")
    return tmp_path / "code" / "set"


def test_what_was_written_is_read(compiled: dict[str, HipCode], folder: Path) -> None:
    found = load(folder)
    assert (found.arch, found.compiler) == ("gfx1200", COMPILER)
    assert [(one.name, one.solution, one.code) for one in found.solutions] == [
        (name, solution_digest(named(name)), compiled[name]) for name in "ab"
    ]
    assert found.digest == canonical.digest((folder / MANIFEST).read_bytes())
    # Four files, each named by its digest, and the set.
    assert len(list(folder.iterdir())) == 5
    assert all(path.name in (MANIFEST, canonical.digest(path.read_bytes())[7:]) for path in folder.iterdir())
    assert list(folder.parent.iterdir()) == [folder]


def test_the_same_bytes_whatever_the_umask_and_order(compiled: dict[str, HipCode], folder: Path) -> None:
    before = os.umask(0o077)
    try:
        record(SOLUTIONS[::-1], "gfx1200", folder.parent / "other")
    finally:
        os.umask(before)
    seen = [
        {path.name: (path.read_bytes(), path.stat().st_mode) for path in place.iterdir()}
        for place in (folder, folder.parent / "other")
    ]
    assert seen[0] == seen[1]


def test_nothing_is_written_over(folder: Path) -> None:
    with pytest.raises(InputError, match="there already"):
        record(SOLUTIONS, "gfx1200", folder)


@pytest.mark.parametrize(
    ("status", "error"), [(Status.COMPILE_ERROR, InputError), (Status.UNSUPPORTED, UnsupportedError)]
)
def test_nothing_is_left_of_a_set_that_is_not_whole(
    status: Status, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> HipCode:
        raise BuildFailure(status, "why")

    monkeypatch.setattr(recorded, "compile_hip", fails)
    with pytest.raises(error, match=r"^T/one/p: solution a: .*why$"):
        record(SOLUTIONS, "gfx1200", tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


def raw(folder: Path) -> Path:
    return min(path for path in folder.iterdir() if path.name != MANIFEST)


def rewritten(folder: Path, change: Callable[[Any], Any]) -> None:
    value = json.loads((folder / MANIFEST).read_bytes())
    change(value)
    (folder / MANIFEST).write_bytes(canonical.dumps(value))


def replaced(folder: Path, field: str, data: bytes) -> None:
    """Another file for a part of the first unit, under its own right digest."""

    def change(value: Any) -> None:
        part = value["solutions"][0]["units"][0][field]
        (folder / part["digest"][7:]).unlink()
        part |= {"digest": canonical.digest(data), "size": len(data)}
        (folder / part["digest"][7:]).write_bytes(data)

    rewritten(folder, change)


def link_out(folder: Path) -> None:
    path = raw(folder)
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def pipe(folder: Path) -> None:
    path = raw(folder)
    path.unlink()
    os.mkfifo(path)


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte changed": (
        lambda f: raw(f).write_bytes(raw(f).read_bytes()[:-1] + b"x"), "digest is blake3:.*expected blake3:"
    ),
    "a byte more": (lambda f: raw(f).write_bytes(raw(f).read_bytes() + b"x"), "bytes, expected"),
    "a file less": (lambda f: raw(f).unlink(), "is missing"),
    "a file more": (lambda f: (f / "notes").write_text("x"), "'notes' is not named"),
    "a folder more": (lambda f: (f / "more").mkdir(), "'more' is not named"),
    "a link": (link_out, "plain file"),
    "a pipe": (pipe, "not a plain file"),
    "no set": (lambda f: (f / MANIFEST).unlink(), "cannot be read as a plain file"),
    "spaces": (lambda f: (f / MANIFEST).write_bytes((f / MANIFEST).read_bytes() + b"\n"), "canonical"),
    "a field more": (lambda f: rewritten(f, lambda v: v.update(more=1)), "more"),
    "a field less": (lambda f: rewritten(f, lambda v: v["compiler"].pop("parts")), "compiler.parts"),
    "another schema": (lambda f: rewritten(f, lambda v: v.update(schema="solbench.code-set.v2")), "schema"),
    "an unknown architecture": (lambda f: rewritten(f, lambda v: v.update(arch="gfx9999")), "arch"),
    "a path for a digest": (
        lambda f: rewritten(f, lambda v: v["solutions"][0]["units"][0]["code"].update(digest="blake3:../../x")),
        "digest",
    ),
    "another order": (lambda f: rewritten(f, lambda v: v["solutions"].reverse()), "sorted"),
    "one twice": (lambda f: rewritten(f, lambda v: v["solutions"].append(v["solutions"][1])), "each once"),
    "none": (lambda f: rewritten(f, lambda v: v.update(solutions=[])), "solutions"),
    "another card's code": (lambda f: replaced(f, "code", unit("_Z1av", "gfx942").code), "compiled for gfx942"),
    "no code": (lambda f: replaced(f, "code", b"text"), "not an ELF file"),
    "a kernel without code": (lambda f: replaced(f, "code", unit("_Z1cv").code), "has no kernel _Z1av"),
    "another kernel's text": (lambda f: replaced(f, "assembly", unit("_Z1cv").assembly.encode()), "other kernels"),
    "no text": (lambda f: replaced(f, "assembly", b"\xff"), "not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_set_that_was_touched(fault: str, folder: Path) -> None:
    change, said = FAULTS[fault]
    change(folder)
    with pytest.raises(IntegrityError, match=said) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("limit", ["MANIFEST_BYTES", "CODE_BYTES", "ASSEMBLY_BYTES", "FILES", "BYTES"])
def test_limits(limit: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, f"MAX_{limit}", 1)
    with pytest.raises(IntegrityError, match="more than"):
        load(folder)


def test_no_set(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    for path in (folder.parent / "nothing", folder.parent / "link", folder / MANIFEST):
        with pytest.raises(InputError, match="no recorded set"):
            load(path)


def verdicts(found: CodeSet, solutions: dict[tuple[str, str], Solution] = BY_KEY) -> list[str]:
    return [one.verdict for one in rederive(found, solutions)]


def test_the_same_again(folder: Path) -> None:
    assert verdicts(load(folder)) == ["same", "same"]


def test_other_bytes(compiled: dict[str, HipCode], folder: Path) -> None:
    old = compiled["b"].units[0]
    compiled["b"] = HipCode(
        "gfx1200", (HipUnit("main.hip", old.code + b"x", old.assembly, old.kernels),), COMPILER, ("-O3",)
    )
    first, second = rederive(load(folder), BY_KEY)
    assert first.verdict == "same"
    assert (second.verdict, second.reason) == ("differs", "main.hip: code")


def test_a_solution_that_changed_or_went(folder: Path) -> None:
    changed = Solution.load({**named("a").as_dict(), "author": "another"}, "test")
    assert verdicts(load(folder), {("T/one/p", "a"): changed}) == ["stale", "stale"]


def test_a_solution_that_no_longer_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> HipCode:
        raise BuildFailure(Status.COMPILE_ERROR, "why")

    monkeypatch.setattr(recorded, "compile_hip", fails)
    assert verdicts(load(folder)) == ["differs", "differs"]


def test_another_compiler_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "toolchain", lambda arch: {**COMPILER, "version": "another clang version 23"})
    one, _ = rederive(load(folder), BY_KEY)
    assert one.verdict == "other compiler"
    assert one.reason is not None and "some clang version 22" in one.reason and "another clang version 23" in one.reason


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(arch: str) -> dict[str, str]:
        raise BuildFailure(Status.UNSUPPORTED, "apt-get install clang-22")

    monkeypatch.setattr(recorded, "toolchain", fails)
    one, _ = rederive(load(folder), BY_KEY)
    assert (one.verdict, one.reason) == ("no compiler", "apt-get install clang-22")


COMMITTED = sorted((ROOT / "measurements" / "code").iterdir())
each_set = pytest.mark.parametrize("place", COMMITTED, ids=lambda path: path.name)


def hip_solutions() -> dict[tuple[str, str], Solution]:
    folders = [path.parents[1] for path in (ROOT / "problems").glob("*/*/*/solutions/hip")]
    problems = [load_problem(folder) for folder in folders]
    return {(p.key, one.name): one for p in problems for one in p.solutions if "hip_cpp" in one.spec.languages}


def test_every_candidate_is_recorded() -> None:
    """As it is now: whoever changes one records a new set."""
    kept = {(one.key, one.solution) for place in COMMITTED for one in load(place).solutions}
    assert {(key, solution_digest(one)) for key, one in hip_solutions().items()} <= kept


@needs_compiler
@pytest.mark.slow
@each_set
def test_the_committed_sets_again(place: Path) -> None:
    """Another compiler is no fault of theirs."""
    assert [one for one in rederive(load(place), hip_solutions()) if one.verdict == "differs"] == []


@needs_compiler
@pytest.mark.slow
def test_with_the_compiler_that_is_here(tmp_path: Path) -> None:
    found = record([("T/one/p", solution())], "gfx1200", tmp_path / "set")
    assert verdicts(found, {("T/one/p", "s"): solution()}) == ["same"]
    assert found.solutions[0].code.kernels == ("_Z5shiftPKfPfi",)
