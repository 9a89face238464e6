"""HIP as a distribution packs it, for its own clang: what it lacks for cards and compilers that came later is made.

Debian 12 has clang up to 22 beside headers and a device library of ROCm 5.2. The library is bitcode that all cards
share and one file a card, which defines one number: the ISA version, major * 1000 + minor * 100 + stepping, as the 36
files of 5.2.3 have it (oclc_isa_version_90a.bc: 9010, oclc_isa_version_1030.bc: 10300). The compiler makes that file
anew from two lines of IR, for any card, before it compiles; the second one says that denormal numbers count, as does
oclc_daz_opt_off.bc, which clang 22 does not link any more. Names that the headers use and that clang 22 does not give
stand in a header of ours, which is included first: the number of lanes, two reciprocals, and the fence of hip.bc.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "clang-22 clang-tools-22 lld-22 libamdhip64-dev rocm-device-libs"
HEADERS = "/usr/include/hip"
# What clang runs beside itself for device code, and the package without its number.
_BESIDE = {"lld": "lld", "clang-offload-bundler": "clang-tools"}
# The newest whose file the library has; the compiler's own default may be newer.
_ABI = "-mcode-object-version=5"
# Below a build's folder; the compiler runs in another one beside it.
_FOLDER = "device-library"

_ISA = """\
target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {version}, align 4
@__oclc_daz_opt = linkonce_odr protected local_unnamed_addr addrspace(4) constant i8 0, align 1
"""
_GAPS = """\
#ifndef __AMDGCN_WAVEFRONT_SIZE
#define __AMDGCN_WAVEFRONT_SIZE {lanes}
#endif
#ifdef __HIP__
#define __GAPS_FENCE(scope) \\
  order == 2   ? __builtin_amdgcn_fence(2, scope) \\
  : order == 3 ? __builtin_amdgcn_fence(3, scope) \\
  : order == 4 ? __builtin_amdgcn_fence(4, scope) \\
  : order == 5 ? __builtin_amdgcn_fence(5, scope) \\
               : (void)0
extern "C" __device__ inline void __gaps_fence(unsigned, unsigned order, unsigned scope)
    __asm("__atomic_work_item_fence");
extern "C" __device__ inline void __gaps_fence(unsigned, unsigned order, unsigned scope) {{
  if (scope == 1) __GAPS_FENCE("workgroup");
  if (scope == 2) __GAPS_FENCE("agent");
  if (scope == 3) __GAPS_FENCE("");
  if (scope == 4) __GAPS_FENCE("wavefront");
}}
#if __clang_major__ >= 22
extern "C" __device__ __attribute__((const)) _Float16 __llvm_amdgcn_rcp_f16(_Float16) __asm("llvm.amdgcn.rcp.f16");
typedef _Float16 __gaps_2f16 __attribute__((ext_vector_type(2)));
extern "C" __device__ inline __gaps_2f16 __llvm_amdgcn_rcp_2f16(__gaps_2f16 x) {{
  return {{__llvm_amdgcn_rcp_f16(x.x), __llvm_amdgcn_rcp_f16(x.y)}};
}}
#endif
#endif
"""


class Incomplete(Exception):
    """Something is not installed: says what."""


@dataclass(frozen=True)
class Supplement:
    """What a clang needs to find HIP: flags, files below the build's folder (path -> text), commands that run before
    it in a folder beside ``device-library``, and the files and folders that what it makes depends on."""

    flags: tuple[str, ...]
    files: dict[str, str]
    before: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...]


def supplement(compiler: str, arch: str) -> Supplement:
    """For the clang at ``compiler`` and a card (gfx1200); :class:`Incomplete` where a package is missing."""
    beside = os.path.dirname(os.path.realpath(compiler))
    number = os.path.basename(compiler).partition("-")[2]
    for program, package in _BESIDE.items():
        if not os.access(os.path.join(beside, program), os.X_OK):
            name = f"{package}-{number}" if number else package
            raise Incomplete(f"{compiler}: no {program} beside it; apt-get install {name}")
    places = sorted(glob.glob("/usr/lib/*/amdgcn/bitcode"))
    if not places:
        raise Incomplete(f"{compiler}: ROCm's device library is not installed (apt-get install rocm-device-libs)")
    library = sorted(glob.glob(f"{places[0]}/*.bc"))
    shared = [path for path in library if "oclc_isa_version" not in path]
    name = f"../{_FOLDER}/oclc_isa_version_{arch.removeprefix('gfx')}.bc"
    files = {
        f"{_FOLDER}/gaps.h": _GAPS.format(lanes=64 if _version(arch) < 10_000 else 32),
        f"{_FOLDER}/isa.ll": _ISA.format(version=_version(arch)),
    }
    making = (
        compiler, "-x", "ir", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-Wno-unused-command-line-argument",
        "-c", "-emit-llvm", "-o", name, f"../{_FOLDER}/isa.ll",
    )  # fmt: skip
    flags = (
        "--rocm-path=/usr", f"--rocm-device-lib-path=../{_FOLDER}", "-include", f"../{_FOLDER}/gaps.h", _ABI,
    )  # fmt: skip
    return Supplement(flags, files, (("ln", "-s", *shared, f"../{_FOLDER}/"), making), (HEADERS, *shared))


def installed() -> bool:
    """Whether HIP's headers are where a distribution puts them."""
    return Path(HEADERS, "hip_runtime.h").exists()


def _version(arch: str) -> int:
    """10300 of gfx1030, 9010 of gfx90a: the last two digits are hexadecimal."""
    number = arch.removeprefix("gfx")
    try:
        return int(number[:-2]) * 1000 + int(number[-2], 16) * 100 + int(number[-1], 16)
    except (ValueError, IndexError):
        raise Incomplete(f"{arch!r} is no AMD architecture (gfx1200, gfx942)") from None
