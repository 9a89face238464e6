"""Compiling a native candidate: confined like the candidate itself, with allowed flags, cached by content.

The cache (``.solbench/build``) is keyed by sources, flags, compiler and processor; an entry is used only if its bytes
have the digest that was noted when it was built. Deleting it costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.device import cpu
from solbench.evaluate.workers import WorkerFailure, Zygote
from solbench.model.solution import SUFFIXES, Solution
from solbench.model.trace import Status

BASE_FLAGS = ("-O3", "-march=native", "-fopenmp", "-std=c++20", "-shared", "-fPIC")
MAX_LOG_CHARS = 4_000
MAX_LIBRARY_BYTES = 256 << 20
_FLAG = re.compile(
    r"-O([0-3sgz]|fast)?|-std=(c|gnu)\+\+(11|14|17|20|23)|-g[0-3]?|-pthread|-w"
    r"|-W(no-)?[a-z][a-z0-9+-]*"
    r"|-m(arch|tune)=[a-z0-9.-]+|-m(no-)?(avx|sse|fma|bmi|amx|f16c|popcnt|prefer-vector-width|vzeroupper)[a-z0-9.=-]*"
    r"|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?"
    r"|-f(no-)?(openmp(-simd)?|fast-math|math-errno|finite-math-only|associative-math|reciprocal-math|signed-zeros"
    r"|trapping-math|unsafe-math-optimizations|rounding-math|unroll-(all-)?loops|tree-vectorize|tree-slp-vectorize"
    r"|vectorize|slp-vectorize|strict-aliasing|inline-functions|exceptions|rtti|omit-frame-pointer|lto|ipa-pta"
    r"|prefetch-loop-arrays|peel-loops|split-loops|loop-interchange|graphite-identity|loop-nest-optimize"
    r"|visibility=hidden|fp-contract=(fast|on|off)|vect-cost-model=[a-z-]+|excess-precision=[a-z]+)"
)
_LINK_FLAG = re.compile(r"-l(m|pthread|dl|rt|gomp|stdc\+\+|atomic)|-pthread|-fopenmp|-flto|-s")


class BuildFailure(Exception):
    """There is no library: COMPILE_ERROR or UNSUPPORTED, the reason, and the compiler's last lines."""

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log = log


@dataclass(frozen=True)
class Compiler:
    """Path and first line of ``--version``."""

    path: str
    version: str


def find_compiler() -> Compiler:
    """The C++ compiler: ``g++`` in the path. :class:`BuildFailure` says what to install."""
    path = shutil.which("g++")
    if path is None:
        raise BuildFailure(Status.UNSUPPORTED, "no C++ compiler: g++ is not installed (apt-get install g++)")
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildFailure(Status.UNSUPPORTED, f"{path} does not run: {error}") from None
    return Compiler(path, result.stdout.partition("\n")[0].strip())


def cache_folder() -> Path:
    """Where built libraries are kept: ``.solbench/build`` below the current folder."""
    return Path.cwd() / ".solbench" / "build"


def build_library(solution: Solution, timeout_s: float, zygote: Zygote, cache: Path | None = None) -> bytes:
    """Bytes of the shared library of a ``cpp`` solution, from the cache or compiled within ``timeout_s`` seconds in a
    child of ``zygote``.

    :class:`BuildFailure` when a flag is not allowed, when it does not compile, or when there is no compiler.
    """
    flags = _flags(solution)
    compiler = find_compiler()
    key = canonical.derived_key(
        "build",
        {
            "sources": {source.path: canonical.digest(source.content.encode()) for source in solution.sources},
            "flags": flags,
            "compiler": compiler.version,
            "processor": cpu.processor_key(),
        },
    )
    cache = cache if cache is not None else cache_folder()
    cached = _read_cached(cache, key)
    if cached is not None:
        return cached
    library = _compile(solution, compiler, flags, timeout_s, zygote)
    _write_cached(cache, key, library)
    return library


def _flags(solution: Solution) -> list[str]:
    options = solution.spec.compile_options
    for group, pattern in (("cflags", _FLAG), ("ld_flags", _LINK_FLAG)):
        for flag in getattr(options, group):
            if not pattern.fullmatch(flag):
                raise BuildFailure(Status.COMPILE_ERROR, f"compile_options.{group}: {flag!r} is not an allowed flag")
    return [*BASE_FLAGS, *options.cflags, *options.ld_flags]


def _compile(solution: Solution, compiler: Compiler, flags: list[str], timeout_s: float, zygote: Zygote) -> bytes:
    units = sorted(source.path for source in solution.sources if source.path.endswith(SUFFIXES["cpp"]))
    cut = len(BASE_FLAGS) + len(solution.spec.compile_options.cflags)
    command = [compiler.path, *flags[:cut], "-o", "../library.so", *units, *flags[cut:]]
    files = {f"src/{source.path}": source.content.encode() for source in solution.sources}
    with os.fdopen(os.memfd_create("library", os.MFD_CLOEXEC), "rb") as memory:
        try:
            worker = zygote.spawn({"command": command}, files, memory.fileno(), trusted=False)
        except WorkerFailure as error:
            raise BuildFailure(Status.COMPILE_ERROR, error.reason) from None
        try:
            code = worker.exit_code(time.monotonic() + timeout_s)
        finally:
            worker.end()
        log = worker.without_folder(worker.log.text())[-MAX_LOG_CHARS:]
        if code is None:
            raise BuildFailure(Status.COMPILE_ERROR, f"no library within the limit of {timeout_s:g} s", log)
        if code != 0:
            last = next((line for line in log.splitlines() if "error" in line), log.strip().rpartition("\n")[2])
            raise BuildFailure(Status.COMPILE_ERROR, f"g++ ended with {code}: {last[:300]}", log)
        memory.seek(0)
        library = memory.read(MAX_LIBRARY_BYTES + 1)
        if len(library) > MAX_LIBRARY_BYTES:
            raise BuildFailure(Status.COMPILE_ERROR, f"the library is larger than {MAX_LIBRARY_BYTES} bytes", log)
        return library


def _paths(cache: Path, key: str) -> tuple[Path, Path]:
    return cache / key[:2] / f"{key[2:]}.so", cache / key[:2] / f"{key[2:]}.json"


def _read_cached(cache: Path, key: str) -> bytes | None:
    library, note = _paths(cache, key)
    try:
        recorded: Any = json.loads(note.read_bytes())
        data = library.read_bytes()
    except (OSError, ValueError):
        return None
    return data if isinstance(recorded, dict) and recorded.get("digest") == canonical.digest(data) else None


def _write_cached(cache: Path, key: str, data: bytes) -> None:
    library, note = _paths(cache, key)
    library.parent.mkdir(parents=True, exist_ok=True)
    for path, content in ((library, data), (note, json.dumps({"digest": canonical.digest(data)}).encode())):
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
