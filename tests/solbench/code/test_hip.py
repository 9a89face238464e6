"""Device code of hip_cpp solutions: with the compiler that is here, and what is said where it does not compile."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from solbench.code import hip
from solbench.code.hip import compile_hip, kernel_names
from solbench.code.hip_code import HipCode
from solbench.device import codeobject, elf
from solbench.evaluate import compilers
from solbench.evaluate.build import BuildFailure, build_library
from solbench.evaluate.session import Session
from solbench.model.solution import Solution
from solbench.model.trace import Status

SOURCE = """\
#include <hip/hip_runtime.h>
#include "scale.h"
__global__ void __launch_bounds__(128) shift(const float* x, float* y, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = scale(x[i]) + __shfl_xor(x[i], 1);
}
extern "C" void run(const float* x, float* y, long n) { shift<<<(n + 127) / 128, 128>>>(x, y, n); }
"""
HEADER = "__device__ inline float scale(float x) { return expf(x); }\n"


def solution(source: str = SOURCE, *, more: dict[str, str] | None = None, **options: Any) -> Solution:
    texts = {"main.hip": source, "scale.h": HEADER, **(more or {})}
    spec = {
        "languages": ["hip_cpp"], "entry_point": "main.hip::run", "binding": "c", "target_hardware": ["gfx1200"],
        "destination_passing_style": True, "compile_options": options,
    }  # fmt: skip
    sources = [{"path": path, "content": text} for path, text in texts.items()]
    return Solution.load({"name": "s", "definition": "d", "author": "a", "spec": spec, "sources": sources}, "test")


def found(arch: str) -> bool:
    try:
        compilers.find("hip_cpp", arch)
    except compilers.NoCompiler:
        return False
    return True


needs_compiler = pytest.mark.skipif(not found("gfx1200"), reason="no HIP compiler here")


@pytest.fixture(scope="module")
def compiled() -> HipCode:
    return compile_hip(solution(), "gfx1200", 120)


@needs_compiler
def test_code_object_and_assembly(compiled: HipCode) -> None:
    (unit,) = compiled.units
    assert codeobject.arch(unit.code, "code") == "gfx1200"
    assert unit.source == "main.hip"
    assert compiled.kernels == unit.kernels == ("_Z5shiftPKfPfi",)
    assert re.search(r"\.max_flat_workgroup_size: 128$", unit.assembly, re.MULTILINE)
    assert re.search(r"\.wavefront_size: +32$", unit.assembly, re.MULTILINE)
    assert re.search(r"\bv_exp_f32", unit.assembly)
    assert compiled.compiler["version"] and all(text for text in compiled.compiler.values())


@needs_compiler
def test_the_same_bytes_in_another_folder(compiled: HipCode, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        again = compile_hip(solution(), "gfx1200", 120, tmp_path)
    finally:
        os.umask(before)
    assert again == compiled
    assert list(tmp_path.iterdir()) == []


@needs_compiler
@pytest.mark.slow
def test_the_same_bytes_with_debug_information(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "longer" / "name"]
    for folder in folders:
        folder.mkdir(parents=True)
    source = SOURCE.replace("if (i < n)", 'if (n < 0) printf("%s", __FILE__);\n  if (i < n)')
    one, other = (compile_hip(solution(source, cflags=["-g"]), "gfx1200", 120, folder) for folder in folders)
    assert one == other
    assert str(tmp_path).encode() not in one.units[0].code


@needs_compiler
@pytest.mark.slow
def test_the_same_bytes_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    source = SOURCE + '__device__ char when[] = __DATE__ " " __TIME__ " / " __TIMESTAMP__;\n'
    (unit,) = compile_hip(solution(source), "gfx1200", 120).units
    assert b"Jan  1 1970 00:00:00 / Thu Jan  1 00:00:00 1970\0" in unit.code


@needs_compiler
@pytest.mark.slow
def test_it_is_what_the_library_holds(compiled: HipCode, tmp_path: Path) -> None:
    """Machine code of the library that a card would load; the object differs in the name of one empty symbol."""
    with Session(cache=tmp_path) as session:
        library = build_library(solution(), 120, session.zygote(torch=False), tmp_path, arch="gfx1200")
    sections = elf.sections(compiled.units[0].code, "code")
    text = next(section.content for section in sections if section.name == ".text")
    assert len(text) > 64 and text in library


@needs_compiler
@pytest.mark.slow
def test_a_code_object_a_source() -> None:
    other = "#include <hip/hip_runtime.h>\n__global__ void second(float* y) { *y = 1; }\n"
    built = compile_hip(solution(more={"second.hip": other}), "gfx942", 120)
    assert [unit.source for unit in built.units] == ["main.hip", "second.hip"]
    assert built.kernels == ("_Z5shiftPKfPfi", "_Z6secondPf")
    assert {codeobject.arch(unit.code, unit.source) for unit in built.units} == {"gfx942"}
    assert ".wavefront_size: 64" in re.sub(" +", " ", built.units[0].assembly)


MANY = """\
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
__device__ float kept[4];
__device__ static int counted;
__global__ void many(const float* x, float* y, __half* h, __half2* p, float* all) {
  __shared__ float lines[256];
  int i = threadIdx.x;
  lines[i] = x[i];
  __syncthreads();
  y[i] = lines[255 - i] + sinf(x[i]) + powf(x[i], y[i]) + erff(y[i]) + rsqrtf(x[i]) + kept[i & 3];
  h[i] = hrcp(h[i]);
  p[i] = h2rcp(p[i]);
  __threadfence_block();
  __threadfence();
  __threadfence_system();
  atomicAdd(all, __shfl_down(y[i], 4));
  atomicAdd(&counted, __popcll(__ballot(x[i] > 0)));
}
"""


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1200", "gfx942", "gfx1030"])
def test_what_headers_and_device_library_offer(arch: str) -> None:
    (unit,) = compile_hip(solution(MANY, more={"main.hip": MANY}), arch, 120).units
    assert unit.kernels == ("_Z4manyPKfPfP6__halfP7__half2S1_",)
    assert len(re.findall(r"\bs_barrier(?:_wait)?\b", unit.assembly)) == 1
    assert len(re.findall(r"\bv_rcp_f16", unit.assembly)) == 3
    undefined = [
        symbol.name
        for symbol in elf.symbols(elf.sections(unit.code, "code"), "code")
        if symbol.section == elf.UNDEFINED
    ]
    assert [name for name in undefined if name] == []


def refused(candidate: Solution, arch: str = "gfx1200", timeout_s: float = 120) -> BuildFailure:
    with pytest.raises(BuildFailure) as caught:
        compile_hip(candidate, arch, timeout_s)
    assert "\n" not in caught.value.reason
    return caught.value


@needs_compiler
def test_sources_that_do_not_compile() -> None:
    failure = refused(solution(SOURCE.replace("scale(x[i])", "nothing(x[i])")))
    assert failure.status is Status.COMPILE_ERROR
    assert "main.hip:5" in failure.reason and "nothing" in failure.reason and "/tmp" not in failure.log


@needs_compiler
def test_a_compiler_that_crashes() -> None:
    failure = refused(solution("#pragma clang __debug crash\n" + SOURCE))
    assert failure.status is Status.COMPILE_ERROR
    assert "ended with" in failure.reason


@needs_compiler
def test_more_than_the_time_limit() -> None:
    # 2^40 types, one after another.
    source = SOURCE + (
        "template <int D, long N> struct Tree { static constexpr long v = Tree<D - 1, 2 * N>::v + "
        "Tree<D - 1, 2 * N + 1>::v; };\ntemplate <long N> struct Tree<0, N> { static constexpr long v = N; };\n"
        "static_assert(Tree<40, 0>::v > 0);\n"
    )
    failure = refused(solution(source), timeout_s=4)
    assert failure.status is Status.COMPILE_ERROR
    assert "within the limit of 4 s" in failure.reason


@needs_compiler
def test_more_than_the_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip, "MEMORY_BYTES", 64 << 20)
    failure = refused(solution())
    assert failure.status is Status.COMPILE_ERROR


@needs_compiler
@pytest.mark.parametrize(("limit", "kind"), [("MAX_CODE_BYTES", ".co"), ("MAX_ASSEMBLY_BYTES", ".s")])
def test_more_than_may_come_back(limit: str, kind: str, compiled: HipCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child, which is another process, still has the usual limit of what it may write."""
    monkeypatch.setattr(hip, limit, 1_000)
    failure = refused(solution())
    assert failure.status is Status.COMPILE_ERROR
    assert failure.reason == f"main.hip: {kind} file of more than 1000 bytes"


@needs_compiler
def test_a_source_may_not_read_what_is_not_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("#error seen\n")
    failure = refused(solution(f'#include "{secret}"\n' + SOURCE))
    assert "seen" not in failure.log and "file not found" in failure.log


@needs_compiler
def test_a_flag_that_is_not_allowed() -> None:
    failure = refused(solution(hip_cflags=["-fgpu-rdc"]))
    assert failure.status is Status.COMPILE_ERROR and "-fgpu-rdc" in failure.reason


def test_an_unknown_architecture() -> None:
    failure = refused(solution(), "gfx9999")
    assert failure.status is Status.UNSUPPORTED and "gfx1200" in failure.reason


def test_another_language() -> None:
    fields = solution().as_dict()
    fields["spec"] |= {"languages": ["cpp"], "entry_point": "main.cpp::run"}
    fields["sources"][0]["path"] = "main.cpp"
    failure = refused(Solution.load(fields, "test"))
    assert failure.status is Status.UNSUPPORTED and "hip_cpp" in failure.reason


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "_hip_programs", lambda: iter(()))
    failure = refused(solution())
    assert failure.status is Status.UNSUPPORTED
    for package in ("clang-22", "lld-22", "libamdhip64-dev", "rocm-device-libs"):
        assert package in failure.reason


def test_names_of_kernels() -> None:
    text = "\t.amdhsa_kernel b\n\t.end_amdhsa_kernel\n  .amdhsa_kernel a_1\n; .amdhsa_kernel no\n"
    assert kernel_names(text) == ("b", "a_1")
