"""Compilers of the native languages: where they are found, what identifies them, what flags a solution may add.

A flag is allowed because a pattern here matches all of it. None of them names a file, a folder or a library outside the
compiler's own, loads a plug-in, or hands on raw options to another program.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from solbench import canonical
from solbench.evaluate import distribution

_DEFINE = r"-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?"
_STANDARD = r"-std=(c|gnu)\+\+(11|14|17|20|23)"
_WARNINGS = r"-w|-W(no-)?[a-z][a-z0-9+-]*"
_ARITHMETIC = (
    r"-f(no-)?(fast-math|math-errno|finite-math-only|associative-math|reciprocal-math|signed-zeros|trapping-math"
    r"|unsafe-math-optimizations|rounding-math|unroll-(all-)?loops|vectorize|slp-vectorize|strict-aliasing"
    r"|inline-functions|exceptions|rtti|omit-frame-pointer|visibility=hidden|fp-contract=(fast|on|off))"
)
_GXX = re.compile(
    rf"-O([0-3sgz]|fast)?|-g[0-3]?|-pthread|{_STANDARD}|{_WARNINGS}|{_DEFINE}|{_ARITHMETIC}"
    r"|-m(arch|tune)=[a-z0-9.-]+|-m(no-)?(avx|sse|fma|bmi|amx|f16c|popcnt|prefer-vector-width|vzeroupper)[a-z0-9.=-]*"
    r"|-f(no-)?(openmp(-simd)?|tree-vectorize|tree-slp-vectorize|lto|ipa-pta|prefetch-loop-arrays|peel-loops|split-loops"
    r"|loop-interchange|graphite-identity|loop-nest-optimize|vect-cost-model=[a-z-]+|excess-precision=[a-z]+)"
)
_CLANG_ANY = (
    rf"-O([0-3sz]|fast)?|-g[0-3]?|{_STANDARD}|{_WARNINGS}|{_DEFINE}|{_ARITHMETIC}"
    r"|-f(no-)?gpu-(approx-transcendentals|flush-denormals-to-zero)"
    r"|-m(no-)?(cumode|unsafe-fp-atomics|tgsplit)|--gpu-max-threads-per-block=[0-9]+"
)
_CLANG = re.compile(rf"{_CLANG_ANY}|-m(no-)?wavefrontsize64")
# A distribution's headers have the number of lanes as a constant, which is the card's usual one.
_CLANG_OF_DISTRIBUTION = re.compile(_CLANG_ANY)
_NVCC = re.compile(
    rf"-O[0-3]|-std=c\+\+(11|14|17|20)|-w|{_DEFINE}|--?(use_fast_math|extra-device-vectorization|restrict)|-lineinfo"
    r"|--?(ftz|prec-div|prec-sqrt|fmad)=(true|false)|--?maxrregcount=[0-9]+|-arch=sm_[0-9]+a?"
    r"|--?(expt-relaxed-constexpr|expt-extended-lambda|extended-lambda)|--diag-suppress=[0-9,]+"
    r"|-Xptxas=(-O[0-3]|-v|-dlcm=c[agsv]|-warn-spills|--allow-expensive-optimizations=(true|false))"
)
_LIBRARIES = re.compile(r"-l(m|pthread|dl|rt|gomp|stdc\+\+|atomic)|-pthread|-fopenmp|-flto|-s")
_DEVICE_LIBRARIES = re.compile(r"-l(m|pthread|dl|rt|stdc\+\+|atomic)")
_CUDA_LIBRARIES = re.compile(r"-l(m|pthread|dl|rt|stdc\+\+|atomic|cuda)")


class NoCompiler(Exception):
    """There is none for this language here: says what to install."""


@dataclass(frozen=True)
class Compiler:
    """One compiler for one architecture.

    ``version`` is its own words without a path; ``digest`` that of its program. ``flags`` come first, ``linking`` after
    the sources. ``allowed``: for each field of ``compile_options`` that counts, which flags it may hold. ``files``
    (path -> text) are laid below a build's folder, and ``before`` are commands that run there, like the compiler in
    ``src``, before it does. ``parts``: files and folders beside the program that what it makes depends on.
    """

    path: str
    version: str
    digest: str
    flags: tuple[str, ...]
    allowed: Mapping[str, re.Pattern[str]]
    linking: tuple[str, ...] = ()
    # What a flag of ``cflags`` is written behind, where the compiler calls another one for the host's code.
    host_prefix: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[tuple[str, ...], ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def title(self) -> str:
        """One line of ``version``: the first, of nvcc the one with its release."""
        lines = self.version.splitlines()
        return next((line for line in lines if "release" in line), lines[0] if lines else "unknown")


def find(language: str, arch: str | None) -> Compiler:
    """The compiler of ``cpp``, ``hip_cpp`` or ``cuda_cpp``; ``arch`` is the card's (gfx1200, sm_90), None on a host.

    :class:`NoCompiler` says what to install.
    """
    if language == "cpp":
        return _gxx()
    if arch is None:
        raise NoCompiler(f"{language} needs a card; the host has none")
    return _hip(arch) if language == "hip_cpp" else _nvcc(arch)


def titles(arch: str | None) -> dict[str, str]:
    """One line a compiler that may have built something for a card, or for the host; ``none`` where there is none."""
    device = {} if arch is None else {"device_compiler": "hip_cpp" if arch.startswith("gfx") else "cuda_cpp"}
    found = {}
    for name, language in {"compiler": "cpp", **device}.items():
        try:
            found[name] = find(language, arch).title
        except NoCompiler:
            found[name] = "none"
    return found


def folders() -> list[str]:
    """Where the compilers that are found here are installed, with everything that they need."""
    programs = [shutil.which("g++"), *(program for program, _ in _hip_programs()), *_cuda_programs()]
    found = [os.path.dirname(os.path.dirname(os.path.realpath(program))) for program in programs if program]
    return list(dict.fromkeys([*found, *_roots("ROCM_PATH", "/opt/rocm"), *_roots("CUDA_HOME", "/usr/local/cuda")]))


def _gxx() -> Compiler:
    path = shutil.which("g++")
    if path is None:
        raise NoCompiler("no C++ compiler: g++ is not installed (apt-get install g++)")
    flags = ("-O3", "-march=native", "-fopenmp", "-std=c++20", "-shared", "-fPIC")
    return Compiler(path, *_identity(path), flags, {"cflags": _GXX, "ld_flags": _LIBRARIES})


def _hip(arch: str) -> Compiler:
    path, root = next(_hip_programs(), (None, None))
    if path is None:
        raise NoCompiler(
            "no HIP compiler: neither hipcc nor clang with HIP's headers is installed "
            f"(ROCm's hip-dev and rocm-llvm; or apt-get install {distribution.PACKAGES})"
        )
    flags = ["-x", "hip", f"--offload-arch={arch}", "--no-offload-compress", "-O3", "-std=c++17", "-shared", "-fPIC"]
    if root is None:
        try:
            added = distribution.supplement(path, arch)
        except distribution.Incomplete as error:
            raise NoCompiler(str(error)) from None
        return Compiler(
            path, *_identity(path), (*flags, *added.flags), _hip_flags(_CLANG_OF_DISTRIBUTION),
            files=added.files, before=added.before, parts=added.parts,
        )  # fmt: skip
    if os.path.basename(path) != "hipcc":
        flags += [f"--rocm-path={root}"]
    parts = (os.path.join(root, "include", "hip"), os.path.join(root, "amdgcn", "bitcode"))
    return Compiler(path, *_identity(path), tuple(flags), _hip_flags(_CLANG), parts=parts)


def _hip_flags(pattern: re.Pattern[str]) -> dict[str, re.Pattern[str]]:
    return {"cflags": pattern, "hip_cflags": pattern, "ld_flags": _DEVICE_LIBRARIES}


def _hip_programs() -> Iterator[tuple[str, str | None]]:
    """Compilers in the order in which they are preferred, with the ROCm that they belong to; None: a distribution's."""
    for root in _roots("ROCM_PATH", "/opt/rocm"):
        for program in ("bin/hipcc", "bin/amdclang++", "llvm/bin/clang++"):
            if os.access(os.path.join(root, program), os.X_OK):
                yield os.path.join(root, program), root
    for program in ("hipcc", "amdclang++"):
        if path := shutil.which(program):
            yield path, os.path.dirname(os.path.dirname(path))
    if distribution.installed():
        for program in (*(f"clang++-{version}" for version in range(30, 16, -1)), "clang++"):
            if path := shutil.which(program):
                yield path, None


def _nvcc(arch: str) -> Compiler:
    path = next(_cuda_programs(), None)
    if path is None:
        raise NoCompiler("no CUDA compiler: nvcc is not installed (the CUDA toolkit; CUDA_HOME says where)")
    flags = (f"-arch={arch}", "-O3", "-std=c++17", "-shared", "-Xcompiler=-fPIC")
    allowed = {"cflags": _GXX, "cuda_cflags": _NVCC, "ld_flags": _CUDA_LIBRARIES}
    return Compiler(path, *_identity(path), flags, allowed, host_prefix="-Xcompiler=")


def _cuda_programs() -> Iterator[str]:
    for root in _roots("CUDA_HOME", "/usr/local/cuda"):
        if os.access(os.path.join(root, "bin/nvcc"), os.X_OK):
            yield os.path.join(root, "bin/nvcc")
    if path := shutil.which("nvcc"):
        yield path


def _roots(variable: str, usual: str) -> list[str]:
    """Folders of an installation that are there, without the links that lead to them."""
    named = [os.environ.get(variable), usual]
    return list(dict.fromkeys(os.path.realpath(root) for root in named if root and os.path.isdir(root)))


@functools.cache
def _identity(path: str) -> tuple[str, str]:
    """What a compiler says of itself, and the digest of its program; asked once a process."""
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True)
        digest = canonical.digest(Path(path).read_bytes())
    except (OSError, subprocess.SubprocessError) as error:
        raise NoCompiler(f"{path} does not run: {error}") from None
    lines = [line.strip() for line in result.stdout.splitlines()]
    return "\n".join(line for line in lines if line and not re.search(r"(^|\s)/", line)), digest
