"""What a distribution's HIP lacks, and what is made in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from solbench.evaluate import compilers, distribution

# As rocm-device-libs 5.2.3 has them: gfx90a, gfx940, gfx1010, gfx1030 and gfx1036 by llvm-dis; the others by the rule.
VERSIONS = {"gfx900": 9000, "gfx90a": 9010, "gfx940": 9400, "gfx1010": 10100, "gfx1030": 10300, "gfx1036": 10306,
            "gfx942": 9402, "gfx1200": 12000, "gfx1201": 12001}  # fmt: skip


@pytest.mark.parametrize(("arch", "version"), VERSIONS.items())
def test_isa_version(arch: str, version: int) -> None:
    assert distribution._version(arch) == version


@pytest.fixture
def clang(tmp_path: Path) -> Path:
    """An installation of clang in which nothing runs."""
    for name in ("clang++-22", "lld", "clang-offload-bundler"):
        (tmp_path / name).touch(0o755)
    return tmp_path / "clang++-22"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    files = [f"{tmp_path}/bitcode/{name}" for name in ("ocml.bc", "oclc_isa_version_1030.bc")]
    found = {"/usr/lib/*/amdgcn/bitcode": [f"{tmp_path}/bitcode"], f"{tmp_path}/bitcode/*.bc": files}
    monkeypatch.setattr(distribution.glob, "glob", lambda pattern: found.get(pattern, []))
    return files


@pytest.mark.parametrize(("arch", "lanes"), [("gfx1030", 32), ("gfx1200", 32), ("gfx942", 64)])
def test_what_is_made(clang: Path, library: list[str], arch: str, lanes: int) -> None:
    """Also for a card that the library has a file of: all are built alike."""
    added = distribution.supplement(str(clang), arch)
    links, making = added.before
    assert links == ("ln", "-s", library[0], "../device-library/")
    assert making[0] == str(clang) and f"../device-library/oclc_isa_version_{arch[3:]}.bc" in making
    assert "--rocm-device-lib-path=../device-library" in added.flags
    assert f"i32 {VERSIONS[arch]}," in added.files["device-library/isa.ll"]
    assert f"__AMDGCN_WAVEFRONT_SIZE {lanes}\n" in added.files["device-library/gaps.h"]
    assert added.parts == (distribution.HEADERS, library[0])


@pytest.mark.parametrize(("missing", "package"), [("lld", "lld-22"), ("clang-offload-bundler", "clang-tools-22")])
def test_a_missing_program(clang: Path, library: list[str], missing: str, package: str) -> None:
    (clang.parent / missing).unlink()
    with pytest.raises(distribution.Incomplete, match=f"apt-get install {package}$"):
        distribution.supplement(str(clang), "gfx1200")


def test_a_missing_library(clang: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution.glob, "glob", lambda pattern: [])
    with pytest.raises(distribution.Incomplete, match="apt-get install rocm-device-libs"):
        distribution.supplement(str(clang), "gfx1200")


@pytest.mark.parametrize("arch", ["gfx", "gfxyz!", "sm_90"])
def test_no_architecture(clang: Path, library: list[str], arch: str) -> None:
    with pytest.raises(distribution.Incomplete, match="no AMD architecture"):
        distribution.supplement(str(clang), arch)


def test_lanes_are_not_chosen(clang: Path, library: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its headers hold their number as a constant."""
    monkeypatch.setattr(compilers, "_hip_programs", lambda: iter([(str(clang), None)]))
    monkeypatch.setattr(compilers, "_identity", lambda path: ("", ""))
    allowed = compilers.find("hip_cpp", "gfx1200").allowed["hip_cflags"]
    assert allowed.fullmatch("-mcumode") and not allowed.fullmatch("-mwavefrontsize64")
