from __future__ import annotations

import ctypes
import dataclasses
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from solbench.evaluate import build, compilers, identity
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status

SOURCE = '#include "number.h"\nextern "C" int run() { return number() + EXTRA; }\n'
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def solution(source: str = SOURCE, **options: Any) -> Solution:
    sources = [
        {"path": "main.cpp", "content": source},
        {"path": "number.cpp", "content": "int number() { return 40; }\n"},
        {"path": "number.h", "content": "int number();\n"},
    ]
    spec = {
        "languages": ["cpp"], "entry_point": "main.cpp::run", "binding": "c",
        "compile_options": {"cflags": ["-DEXTRA=2"], **options},
    }  # fmt: skip
    fields = {"name": "s", "definition": "d", "author": "a", "spec": spec, "sources": sources}
    return Solution.load(fields, "test")


def built(candidate: Solution, session: Session, cache: Path, seconds: float = 60) -> bytes:
    return build.build_library(candidate, seconds, session.zygote(torch=False), cache)


def test_build_and_cache(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = built(solution(), session, tmp_path / "cache")
    path = tmp_path / "library.so"
    path.write_bytes(library)
    assert ctypes.CDLL(str(path)).run() == 42
    # The second time nothing is compiled; other sources or flags are.
    monkeypatch.setattr(build, "_compile", lambda *arguments: b"compiled again")
    assert built(solution(), session, tmp_path / "cache") == library
    assert built(solution(cflags=["-DEXTRA=3"]), session, tmp_path / "cache") == b"compiled again"
    assert built(solution(SOURCE + "\n"), session, tmp_path / "cache") == b"compiled again"


def test_a_changed_cache_entry_is_not_used(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_compile", lambda *arguments: b"compiled")
    built(solution(), session, tmp_path)
    (entry,) = tmp_path.rglob("*.so")
    entry.write_bytes(b"tampered")
    assert built(solution(), session, tmp_path) == b"compiled"


def test_compile_error_has_the_last_lines(session: Session, tmp_path: Path) -> None:
    with pytest.raises(build.BuildFailure) as caught:
        built(solution('extern "C" int run() { return nothing; }\n'), session, tmp_path)
    assert caught.value.status is Status.COMPILE_ERROR
    assert "nothing" in caught.value.reason and "main.cpp:1" in caught.value.log
    assert tempfile.gettempdir() not in caught.value.log


def test_compile_limit(session: Session, tmp_path: Path) -> None:
    # Doubles at every level; the compiler would need hours.
    source = (
        "template <int n, int m> struct T { static constexpr long v = T<n - 1, 2 * m>::v + T<n - 1, 2 * m + 1>::v; };\n"
    )
    source += "template <int m> struct T<0, m> { enum { v = m }; };\n"
    with pytest.raises(build.BuildFailure, match=r"within the limit of 0\.5 s") as caught:
        source += 'extern "C" long run() { return T<28, 0>::v; }\n'
        built(solution(source, cflags=[f"-DMARK_{os.getpid()}"]), session, tmp_path, 0.5)
    assert caught.value.status is Status.COMPILE_ERROR
    assert f"MARK_{os.getpid()}" not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "flag",
    ["-fplugin=x.so", "-I/etc", "@file", "-Wl,-rpath,/x", "-B/x", "-include/etc/passwd", "-o/x", "-specs=x", "-wrapper",
     "-D", "-DX=$(id)", "-mcmodel=x y", "", "x.o", "-fprofile-use=/x", "-O3 -I/"],
)  # fmt: skip
def test_forbidden_flags(session: Session, tmp_path: Path, flag: str) -> None:
    with pytest.raises(build.BuildFailure, match="not an allowed flag") as caught:
        built(solution(cflags=[flag]), session, tmp_path)
    assert caught.value.status is Status.COMPILE_ERROR


@pytest.mark.parametrize(
    "flag", ["-O2", "-Ofast", "-ffast-math", "-fno-math-errno", "-funroll-loops", "-march=x86-64-v3", "-mavx2",
             "-mprefer-vector-width=256", "-DN=4", "-Wall", "-std=c++17", "-flto"],
)  # fmt: skip
def test_allowed_flags(flag: str) -> None:
    assert flag in build.allowed_flags(solution(cflags=[flag]), compilers.find("cpp", None))[0]


def test_link_flags() -> None:
    compiler = compilers.find("cpp", None)
    assert build.allowed_flags(solution(ld_flags=["-lm"]), compiler)[1] == ["-lm"]
    with pytest.raises(build.BuildFailure):
        build.allowed_flags(solution(ld_flags=["-L/x"]), compiler)


def test_another_compiler_or_harness_builds_anew(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_compile", lambda *arguments: b"first")
    built(solution(), session, tmp_path)
    monkeypatch.setattr(build, "_compile", lambda *arguments: b"second")
    assert built(solution(), session, tmp_path) == b"first"
    found = compilers.find("cpp", None)
    for other in (dataclasses.replace(found, version="13"), dataclasses.replace(found, digest="blake3:0")):
        monkeypatch.setattr(compilers, "find", lambda language, arch, other=other: other)
        assert built(solution(), session, tmp_path) == b"second"
    monkeypatch.setattr(compilers, "find", lambda language, arch: found)
    # A compiler at another place is the same one.
    monkeypatch.setattr(compilers, "find", lambda language, arch: dataclasses.replace(found, path="/elsewhere/g++"))
    assert built(solution(), session, tmp_path) == b"first"
    monkeypatch.setattr(identity, "harness_digest", lambda: "blake3:0")
    assert built(solution(), session, tmp_path) == b"second"


def test_no_compiler(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.BuildFailure, match="apt-get install") as caught:
        built(solution(), session, tmp_path)
    assert caught.value.status is Status.UNSUPPORTED
