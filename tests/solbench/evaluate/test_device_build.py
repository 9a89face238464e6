"""Libraries of hip_cpp and cuda_cpp: with the compilers that are here, and with one that a script plays."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solbench.device import codeobject
from solbench.evaluate import build, compilers
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status
from tests.solbench.device.elf_files import elf_with_section, hip_bundle, nv_fatbin

SOURCE = """\
#include "scale.h"
__global__ void shift(const float* x, float* y, long n) {
  long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = scale(x[i]) + EXTRA;
}
extern "C" void run(const float* x, float* y, long n) { shift<<<(n + 255) / 256, 256>>>(x, y, n); }
"""
# Device code of a card that nobody has asked for.
OTHER = {"hip_cpp": "gfx1100", "cuda_cpp": "sm_75"}
SUFFIX = {"hip_cpp": ".hip", "cuda_cpp": ".cu"}
HEADER = {"hip_cpp": "#include <hip/hip_runtime.h>\n", "cuda_cpp": ""}


def solution(language: str, source: str = SOURCE, **options: Any) -> Solution:
    suffix = SUFFIX[language]
    text = HEADER[language]
    sources = [
        {"path": f"main{suffix}", "content": text + source},
        {"path": "scale.h", "content": "__device__ float scale(float x);\n__device__ inline float scale(float x) "
         "{ return expf(x) * 2; }\n"},
        {"path": f"second{suffix}", "content": text + "__global__ void unused(float* y) { *y = 1; }\n"},
    ]  # fmt: skip
    spec = {
        "languages": [language], "entry_point": f"main{suffix}::run", "binding": "c",
        "target_hardware": ["gfx1200", "sm_90"],
        "compile_options": {"cflags": ["-DEXTRA=2"], **options},
    }  # fmt: skip
    fields = {"name": "s", "definition": "d", "author": "a", "spec": spec, "sources": sources}
    return Solution.load(fields, "test")


def built(candidate: Solution, session: Session, cache: Path, arch: str | None) -> bytes:
    return build.build_library(candidate, 100, session.zygote(torch=False), cache, arch=arch)


def needed(language: str, arch: str) -> compilers.Compiler:
    try:
        return compilers.find(language, arch)
    except compilers.NoCompiler as error:
        pytest.skip(str(error))


# gfx1030: the newest of which Debian's device library has anything.
@pytest.mark.slow
@pytest.mark.parametrize(("language", "arch"), [("hip_cpp", "gfx1200"), ("hip_cpp", "gfx1030"), ("cuda_cpp", "sm_90")])
def test_what_a_compiler_makes(language: str, arch: str, session: Session, tmp_path: Path) -> None:
    needed(language, arch)
    library = built(solution(language), session, tmp_path, arch)
    assert codeobject.library_archs(library, "library") == (arch,)
    assert b"run\0" in library
    (entry,) = tmp_path.rglob("*.so")
    assert built(solution(language), session, tmp_path, arch) == library == entry.read_bytes()
    with pytest.raises(build.BuildFailure) as caught:
        built(solution(language, SOURCE.replace("EXTRA", "nothing")), session, tmp_path, arch)
    assert caught.value.status is Status.COMPILE_ERROR
    assert "nothing" in caught.value.reason and f"main{SUFFIX[language]}" in caught.value.log


@pytest.mark.slow
def test_an_architecture_of_its_own(session: Session, tmp_path: Path) -> None:
    needed("cuda_cpp", "sm_90")
    library = built(solution("cuda_cpp", cuda_cflags=["-arch=sm_90a", "-use_fast_math"]), session, tmp_path, "sm_90")
    assert codeobject.library_archs(library, "library") == ("sm_90",)
    with pytest.raises(build.BuildFailure, match="compiled for sm_80, but the card is sm_90") as caught:
        built(solution("cuda_cpp", cuda_cflags=["-arch=sm_80"]), session, tmp_path, "sm_90")
    assert caught.value.status is Status.COMPILE_ERROR
    assert len(list(tmp_path.rglob("*.so"))) == 1


# ---- a compiler that a script plays: it notes its arguments in the library and adds prepared device code


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Without namespaces, which do not show the script's folder."""
    with Session(cache=tmp_path_factory.mktemp("build"), unsandboxed=True) as session:
        yield session


def fake(folder: Path, name: str, arch: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "code.so").write_bytes(host_library(arch))
    script = folder / name
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{name} 1.0"; echo "InstalledDir: {folder}"; exit; fi\n'
        f'echo "$@" >&2\nwhile [ "$1" != -o ]; do shift; done\ncat {folder}/code.so > "$2"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def host_library(arch: str) -> bytes:
    """A host's ELF file with one section of device code: headers by hand, as the formats' descriptions have them."""
    if arch.startswith("gfx"):
        return elf_with_section(".hip_fatbin", hip_bundle(arch))
    return elf_with_section(".nv_fatbin", nv_fatbin(int(arch[3:])))


@pytest.fixture
def only_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is all that can be found; compilers at their usual places are hidden."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{tmp_path}")
    monkeypatch.setattr(compilers, "_roots", lambda variable, usual: [])
    return folder


@pytest.mark.parametrize(
    ("language", "name", "arch"),
    [("hip_cpp", "hipcc", "gfx1200"), ("hip_cpp", "amdclang++", "gfx942"), ("cuda_cpp", "nvcc", "sm_90")],
)
def test_build_for_a_card(
    language: str, name: str, arch: str, outside: Session, tmp_path: Path, only_fakes: Path
) -> None:
    fake(only_fakes, name, arch)
    cache = tmp_path / "cache"
    library = built(solution(language), outside, cache, arch)
    assert library == (only_fakes / "code.so").read_bytes()
    # Another card's library is another one, and it is not what this compiler makes.
    fake(only_fakes, name, OTHER[language])
    assert built(solution(language), outside, cache, arch) == library
    with pytest.raises(build.BuildFailure, match=f"compiled for {OTHER[language]}, but the card is {arch}") as caught:
        built(solution(language, cflags=["-DEXTRA=3"]), outside, cache, arch)
    assert caught.value.status is Status.COMPILE_ERROR
    assert built(solution(language, cflags=["-DEXTRA=3"]), outside, cache, OTHER[language])


def test_what_is_asked_of_the_compiler(outside: Session, tmp_path: Path, only_fakes: Path) -> None:
    """The script fails, so that its arguments, which it wrote, are in the log."""
    for language, name, arch, expected in (
        (
            "hip_cpp",
            "hipcc",
            "gfx1200",
            ("--offload-arch=gfx1200", "-munsafe-fp-atomics", "-DEXTRA=2", "main.hip second"),
        ),
        ("cuda_cpp", "nvcc", "sm_90", ("-arch=sm_90", "-use_fast_math", "-Xcompiler=-DEXTRA=2", "main.cu second.cu")),
    ):
        fake(only_fakes, name, arch)
        (only_fakes / "code.so").unlink()
        options = {"hip_cflags": ["-munsafe-fp-atomics"], "cuda_cflags": ["-use_fast_math"]}
        with pytest.raises(build.BuildFailure, match=f"{name} ended with 1") as caught:
            built(solution(language, **options), outside, tmp_path, arch)
        assert all(text in caught.value.log for text in expected), caught.value.log
        assert "scale.h" not in caught.value.log


@pytest.mark.parametrize(
    ("language", "arch", "named"), [("hip_cpp", "gfx1200", "hipcc"), ("cuda_cpp", "sm_90", "nvcc")]
)
def test_no_compiler(language: str, arch: str, named: str, outside: Session, tmp_path: Path, only_fakes: Path) -> None:
    if language == "hip_cpp" and os.path.exists("/usr/include/hip/hip_runtime.h"):
        assert "clang" not in os.environ["PATH"]
    with pytest.raises(build.BuildFailure, match=f"{named}.* is.* installed") as caught:
        built(solution(language), outside, tmp_path, arch)
    assert caught.value.status is Status.UNSUPPORTED
    assert "\n" not in caught.value.reason
    with pytest.raises(build.BuildFailure, match="needs a card") as caught:
        built(solution(language), outside, tmp_path, None)
    assert caught.value.status is Status.UNSUPPORTED


def test_a_broken_compiler(outside: Session, tmp_path: Path, only_fakes: Path) -> None:
    only_fakes.mkdir()
    (only_fakes / "nvcc").write_text("#!/bin/sh\nexit 3\n")
    (only_fakes / "nvcc").chmod(0o755)
    with pytest.raises(build.BuildFailure, match="does not run") as caught:
        built(solution("cuda_cpp"), outside, tmp_path, "sm_90")
    assert caught.value.status is Status.UNSUPPORTED


FORBIDDEN = {
    "cflags": ["-Xcompiler=-fplugin=x.so", "-fplugin=x.so", "-I/etc", "@file", "-Wl,-rpath,/x", "-Wp,-MD,/x", "-B/x",
               "-include/etc/passwd", "-o/x", "-specs=x", "-D", "-mllvm", "-Xclang", "-load", "x.o", ""],
    "hip_cflags": ["-mllvm", "-mllvm=-load=x.so", "-Xclang", "-fpass-plugin=x.so", "-Xoffload-linker", "-I/etc",
                   "--rocm-path=/x", "--hip-device-lib=/x", "--offload-arch=gfx90a", "-Xarch_device", "-fgpu-rdc",
                   "-imacros/etc/passwd", "-resource-dir=/x", "--config=/x", "-fgpu-default-stream=per-thread"],
    "cuda_cflags": ["-Xcompiler=-fplugin=x.so", "-Xlinker=-rpath=/x", "-Xptxas=-o=/x", "-Xptxas=-v,-o,/x", "-Xcompiler",
                    "-ccbin=/x", "--options-file=/x", "-optf=/x", "-I/etc", "-include=/etc/passwd", "-Xnvlink=-x",
                    "-default-stream=per-thread", "-arch=native", "-gencode=arch=compute_80,code=sm_80", "-keep",
                    "-objtemp", "-ldir=/x", "-dryrun", "-arch=sm_90 -I/"],
    "ld_flags": ["-L/x", "-Wl,-rpath=/x", "-l/x.so", "-lcrypto", "-Xlinker", "x.so", "-T/x"],
}  # fmt: skip


@pytest.mark.parametrize("language", SUFFIX)
def test_forbidden_flags(language: str, tmp_path: Path, only_fakes: Path) -> None:
    arch = {"hip_cpp": "gfx1200", "cuda_cpp": "sm_90"}[language]
    fake(only_fakes, {"hip_cpp": "hipcc", "cuda_cpp": "nvcc"}[language], arch)
    compiler = compilers.find(language, arch)
    ours = {"hip_cpp": "hip_cflags", "cuda_cpp": "cuda_cflags"}[language]
    for group in ("cflags", ours, "ld_flags"):
        for flag in FORBIDDEN[group]:
            with pytest.raises(build.BuildFailure, match="not an allowed flag") as caught:
                build.allowed_flags(solution(language, **{group: [flag]}), compiler)
            assert caught.value.status is Status.COMPILE_ERROR, flag


ALLOWED = {
    "hip_cpp": {"hip_cflags": ["-O2", "-ffast-math", "-ffp-contract=fast", "-munsafe-fp-atomics", "-mcumode",
                               "--gpu-max-threads-per-block=256", "-DN=4", "-Wall", "-std=c++20"],
                "ld_flags": ["-lm"]},
    "cuda_cpp": {"cuda_cflags": ["-O2", "--use_fast_math", "-maxrregcount=64", "-ftz=true", "--extended-lambda",
                                 "-Xptxas=-O3", "-Xptxas=-dlcm=ca", "-lineinfo", "-DN=4", "-std=c++20"],
                 "ld_flags": ["-lcuda", "-lm"]},
}  # fmt: skip


@pytest.mark.parametrize("language", SUFFIX)
def test_allowed_flags(language: str, only_fakes: Path) -> None:
    arch = {"hip_cpp": "gfx1200", "cuda_cpp": "sm_90"}[language]
    fake(only_fakes, {"hip_cpp": "hipcc", "cuda_cpp": "nvcc"}[language], arch)
    options = ALLOWED[language]
    before, after = build.allowed_flags(solution(language, **options), compilers.find(language, arch))
    assert all(flag in before + after for flags in options.values() for flag in flags)
    assert f"-arch={arch}" in before or f"--offload-arch={arch}" in before
