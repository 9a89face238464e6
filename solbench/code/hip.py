"""Device code of a ``hip_cpp`` solution for a card that is not here: code object and assembly, one pair a source.

The compiler is the one that would build the solution's library (:mod:`solbench.evaluate.compilers`), run a second and a
third time for the device's part alone. It is confined like a candidate, and sees sources under the same relative paths
in every folder, so that the same sources and compiler give the same bytes. Without relocatable device code, which no
allowed flag asks for, each source becomes a code object of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.child import ask
from solbench.code.hip_code import HipCode, HipUnit
from solbench.code.plain_file import last_bytes, open_plain
from solbench.device import codeobject
from solbench.errors import InputError, UnsupportedError
from solbench.evaluate import compilers, sandbox
from solbench.evaluate.build import MAX_LOG_CHARS, BuildFailure, allowed_flags, language_of, units_of
from solbench.model.solution import Solution
from solbench.model.trace import Status

MEMORY_BYTES = 8 << 30
MAX_CODE_BYTES, MAX_ASSEMBLY_BYTES = 16 << 20, 64 << 20
# Of the library's flags, those that are about the host's part.
_OF_LIBRARY = frozenset({"-shared", "-fPIC", "--no-offload-compress"})
# No name that depends on where a source lies; a crash leaves no copy of the sources.
_DEVICE = ("--offload-device-only", "--no-gpu-bundle-output", "-fuse-cuid=none", "-fno-crash-diagnostics")
_WRONG = re.compile("error|undefined reference")
_KERNEL = re.compile(r"^\s*\.amdhsa_kernel\s+(\S+)\s*$", re.MULTILINE)


def toolchain(arch: str) -> dict[str, str]:
    """What HIP is compiled with here: ``compiler``, ``version`` (its own words), ``program`` (digest of the file that
    is run) and ``parts`` (of HIP's headers and the device library). :class:`BuildFailure` (UNSUPPORTED) where there is
    none, with what to install."""
    compiler = _compiler(arch)
    return {
        "compiler": compiler.name,
        "version": compiler.version,
        "program": compiler.digest,
        "parts": _digest_of(compiler.parts),
    }


def compile_hip(solution: Solution, arch: str, timeout_s: float, folder: Path | None = None) -> HipCode:
    """Device code of ``solution`` for ``arch`` (gfx1200), compiled within ``timeout_s`` seconds in a new folder in
    ``folder``, the system's for temporary files by default.

    :class:`BuildFailure`: UNSUPPORTED for another language, an unknown architecture or a missing compiler;
    COMPILE_ERROR for a flag that is not allowed and for sources that do not compile, with the compiler's last lines.
    """
    flags: tuple[str, ...] = ()

    def commands(given: Sequence[str], units: Sequence[str]) -> list[list[str]]:
        nonlocal flags
        flags = (*given, *_DEVICE)
        return [[*flags, *what, f"../{number}.{suffix}", unit] for number, unit in enumerate(units)
                for what, suffix in ((("-c", "-o"), "co"), (("-S", "-o"), "s"))]  # fmt: skip

    with compiled(solution, arch, timeout_s, commands, folder=folder) as place:
        built = tuple(_unit(place, number, unit, arch) for number, unit in enumerate(units_of(solution)))
    return HipCode(arch, built, toolchain(arch), flags)


@contextlib.contextmanager
def compiled(
    solution: Solution,
    arch: str,
    timeout_s: float,
    commands: Callable[[Sequence[str], Sequence[str]], list[list[str]]],
    *,
    files: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[Path]:
    """A folder in which the compiler of ``solution`` has run as ``commands`` say: its arguments, a list a run, from the
    allowed flags without those for a library and from the paths of the sources, in a folder beside it (``src``).

    ``files`` (path -> text) are laid below the folder too. It is gone afterwards. Failures as of :func:`compile_hip`.
    """
    if language_of(solution) != "hip_cpp":
        raise BuildFailure(Status.UNSUPPORTED, f"language: {', '.join(solution.spec.languages)} is not hip_cpp")
    compiler = _compiler(arch)
    flags = [flag for flag in allowed_flags(solution, compiler)[0] if flag not in _OF_LIBRARY]
    asked = commands(flags, units_of(solution))
    sandbox.isolation()  # refuses where there would be none
    with tempfile.TemporaryDirectory(prefix="solbench-code-", dir=folder) as name:
        place = Path(name).resolve()
        for path, text in [*((f"src/{source.path}", source.content) for source in solution.sources),
                           *compiler.files.items(), *(files or {}).items()]:  # fmt: skip
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
            os.utime(target, (0, 0))
        prefix = f"-ffile-prefix-map={place}=/solution"
        every = [list(command) for command in compiler.before] + [[compiler.path, prefix, *run] for run in asked]
        answers, fault = ask(
            "solbench.code.hip:run_compiler", {"commands": every}, place,
            timeout_s=timeout_s, memory_bytes=MEMORY_BYTES, torch=False,
        )  # fmt: skip
        log = last_bytes(place / "compiler-log", 4 * MAX_LOG_CHARS).decode("utf-8", "replace")[-MAX_LOG_CHARS:]
        log = log.replace(str(place), "")
        if fault == "timeout":
            raise BuildFailure(Status.COMPILE_ERROR, f"not compiled within the limit of {timeout_s:g} s", log)
        codes = [answer for answer in answers if type(answer) is int]
        if fault is not None or codes != [0] * len(every):
            how = fault or f"ended with {next((code for code in codes if code), 'no answer')}"
            last = next((line for line in log.splitlines() if _WRONG.search(line)), log.strip().rpartition("\n")[2])
            raise BuildFailure(Status.COMPILE_ERROR, f"{compiler.name} {how}: {last[:300]}", log)
        yield place


def run_compiler(request: Mapping[str, Any], folder: Path) -> Iterator[int]:
    """In the child: run commands in ``folder/src``; their exit codes up to the first that is not 0."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_ASSEMBLY_BYTES, MAX_ASSEMBLY_BYTES))
    # __DATE__, __TIME__ and __TIMESTAMP__ are the same whenever it runs.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "TZ": "UTC"}
    with open(folder / "compiler-log", "wb") as log:
        for command in request["commands"]:
            code = subprocess.call(
                command, cwd=folder / "src", env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            yield code
            if code:
                return


def kernel_names(assembly: str) -> tuple[str, ...]:
    """Symbols of the kernels in a compiler's text, in its order."""
    return tuple(dict.fromkeys(_KERNEL.findall(assembly)))


def _compiler(arch: str) -> compilers.Compiler:
    if arch not in codeobject.ARCHITECTURES:
        known = ", ".join(codeobject.ARCHITECTURES)
        raise BuildFailure(Status.UNSUPPORTED, f"{arch}: not an AMD architecture that is known here ({known})")
    try:
        return compilers.find("hip_cpp", arch)
    except compilers.NoCompiler as error:
        raise BuildFailure(Status.UNSUPPORTED, str(error)) from None


@cache
def _digest_of(parts: tuple[str, ...]) -> str:
    """Of the files in folders and of files, by name and content."""
    files = {}
    for part in map(Path, parts):
        for file in sorted(part.rglob("*")) if part.is_dir() else [part]:
            if file.is_file():
                files[f"{part.name}/{file.relative_to(part)}"] = canonical.digest(file.read_bytes())
    return canonical.digest(canonical.dumps(files))


def _unit(folder: Path, number: int, source: str, arch: str) -> HipUnit:
    code = _read(folder / f"{number}.co", MAX_CODE_BYTES, source)
    assembly = _read(folder / f"{number}.s", MAX_ASSEMBLY_BYTES, source).decode("utf-8", "replace")
    try:
        built = codeobject.arch(code, f"{source}: code object")
    except (InputError, UnsupportedError) as error:
        raise BuildFailure(Status.COMPILE_ERROR, str(error)) from None
    if built != arch:
        raise BuildFailure(Status.COMPILE_ERROR, f"{source}: compiled for {built}, not for {arch}")
    kernels = kernel_names(assembly)
    for kernel in kernels:
        if f"\0{kernel}.kd\0".encode() not in code:
            raise BuildFailure(Status.COMPILE_ERROR, f"{source}: kernel {kernel} of the assembly has no code object")
    return HipUnit(source, code, assembly, kernels)


def _read(path: Path, most: int, source: str) -> bytes:
    """Bytes of a file that the compiler left."""
    try:
        with open_plain(path) as file:
            data = file.read(most + 1)
    except OSError:
        raise BuildFailure(Status.COMPILE_ERROR, f"{source}: the compiler left no {path.suffix} file") from None
    if len(data) > most:
        raise BuildFailure(Status.COMPILE_ERROR, f"{source}: {path.suffix} file of more than {most} bytes")
    return data
