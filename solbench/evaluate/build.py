"""Compiling a native candidate: confined like the candidate itself, with allowed flags, cached by content.

The cache (``.solbench/build``) is keyed by sources, flags, compiler, architecture and the harness; an entry is used
only if its bytes have the digest that was noted when it was built, and those bytes are what a worker loads. Deleting it
costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.device import codeobject, cpu
from solbench.errors import InputError, UnsupportedError
from solbench.evaluate import compilers, identity
from solbench.evaluate.compilers import Compiler
from solbench.evaluate.workers import WorkerFailure, Zygote
from solbench.model.solution import SUFFIXES, Solution
from solbench.model.trace import Status

MAX_LOG_CHARS = 4_000
MAX_LIBRARY_BYTES = 256 << 20


class BuildFailure(Exception):
    """There is no library: COMPILE_ERROR or UNSUPPORTED, the reason, and the compiler's last lines."""

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log = log


def cache_folder() -> Path:
    """Where built libraries are kept: ``.solbench/build`` below the current folder."""
    return Path.cwd() / ".solbench" / "build"


def build_library(
    solution: Solution, timeout_s: float, zygote: Zygote, cache: Path | None = None, *, arch: str | None = None
) -> bytes:
    """Bytes of the shared library of a native solution, from the cache or compiled within ``timeout_s`` seconds in a
    child of ``zygote``. ``arch``: the card's architecture (gfx1200, sm_90); None builds for the host.

    :class:`BuildFailure` when a flag is not allowed, when it does not compile, when its device code is for another
    architecture, or when there is no compiler.
    """
    language = language_of(solution)
    try:
        compiler = compilers.find(language, arch)
    except compilers.NoCompiler as error:
        raise BuildFailure(Status.UNSUPPORTED, str(error)) from None
    flags, linking = allowed_flags(solution, compiler)
    key = canonical.derived_key(
        "build",
        {
            "sources": {source.path: canonical.digest(source.content.encode()) for source in solution.sources},
            "flags": [*flags, *linking],
            "compiler": [compiler.version, compiler.digest],
            # The host's part may be for the very processor that is here.
            "target": [arch if language != "cpp" else None, cpu.processor_key()],
            "harness": identity.harness_digest(),
        },
    )
    cache = cache if cache is not None else cache_folder()
    cached = _read_cached(cache, key)
    if cached is not None:
        return cached
    library = _compile(solution, compiler, flags, linking, timeout_s, zygote)
    if language != "cpp":
        assert arch is not None
        _require_arch(library, arch)
    _write_cached(cache, key, library)
    return library


def language_of(solution: Solution) -> str:
    """The native language of a solution: ``cpp`` beside a device language is its host code."""
    native = [name for name in ("hip_cpp", "cuda_cpp") if name in solution.spec.languages]
    if len(native) > 1:
        raise BuildFailure(Status.UNSUPPORTED, "language: hip_cpp and cuda_cpp do not mix")
    return native[0] if native else "cpp"


def units_of(solution: Solution) -> list[str]:
    """Paths of the sources that are compiled, sorted; the others are included by them."""
    suffixes = tuple(suffix for language in solution.spec.languages for suffix in SUFFIXES[language])
    return sorted(source.path for source in solution.sources if source.path.endswith(suffixes))


def allowed_flags(solution: Solution, compiler: Compiler) -> tuple[list[str], list[str]]:
    """Flags before and after the sources; an architecture that the solution names takes the place of ours.

    :class:`BuildFailure` for a flag that is not allowed.
    """
    options = solution.spec.compile_options
    chosen: dict[str, list[str]] = {}
    for group in ("cflags", "hip_cflags", "cuda_cflags", "ld_flags"):
        pattern = compiler.allowed.get(group)
        chosen[group] = list(getattr(options, group)) if pattern else []
        for flag in chosen[group]:
            if pattern and not pattern.fullmatch(flag):
                reason = f"compile_options.{group}: {flag!r} is not an allowed flag of {compiler.name}"
                raise BuildFailure(Status.COMPILE_ERROR, reason)
    host = [compiler.host_prefix + flag for flag in chosen["cflags"]]
    added = [*host, *chosen["hip_cflags"], *chosen["cuda_cflags"]]
    named = any(flag.startswith("-arch=") for flag in chosen["cuda_cflags"])
    ours = [flag for flag in compiler.flags if not (named and flag.startswith("-arch="))]
    return [*ours, *added], [*chosen["ld_flags"], *compiler.linking]


def _compile(
    solution: Solution, compiler: Compiler, flags: list[str], linking: list[str], timeout_s: float, zygote: Zygote
) -> bytes:
    command = [compiler.path, *flags, "-o", "../library.so", *units_of(solution), *linking]
    files = {f"src/{source.path}": source.content.encode() for source in solution.sources}
    files |= {path: text.encode() for path, text in compiler.files.items()}
    with os.fdopen(os.memfd_create("library", os.MFD_CLOEXEC), "rb") as memory:
        try:
            worker = zygote.spawn({"commands": [*compiler.before, command]}, files, memory.fileno(), trusted=False)
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
            raise BuildFailure(Status.COMPILE_ERROR, f"{compiler.name} ended with {code}: {last[:300]}", log)
        memory.seek(0)
        library = memory.read(MAX_LIBRARY_BYTES + 1)
        if len(library) > MAX_LIBRARY_BYTES:
            raise BuildFailure(Status.COMPILE_ERROR, f"the library is larger than {MAX_LIBRARY_BYTES} bytes", log)
        return library


def _require_arch(library: bytes, arch: str) -> None:
    try:
        codeobject.require_library_arch(library, "library.so", arch)
    except (InputError, UnsupportedError) as error:
        raise BuildFailure(Status.COMPILE_ERROR, str(error)) from None


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
