"""The binding end to end, over a compiled library with the runtimes' names."""

from __future__ import annotations

import _ctypes
import ctypes
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from device_fakes import ROOT

from solbench.device import native
from solbench.errors import UndecidedError, UnsupportedError

SOURCE = Path(__file__).with_name("fake_runtime.cpp")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    path = tmp_path_factory.mktemp("runtime") / "libfake.so"
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-o", path, SOURCE], check=True, timeout=120)
    return path


@pytest.fixture(params=["rocm", "cuda"])
def runtime(request: pytest.FixtureRequest, library: Path) -> native.Runtime:
    return native.Runtime(request.param, library)


def test_events_tell_seconds(runtime: native.Runtime) -> None:
    start, stop = runtime.event(), runtime.event()
    runtime.record(start)
    time.sleep(0.02)
    runtime.record(stop)
    runtime.wait(stop)
    assert 0.02 <= runtime.elapsed_s(start, stop) < 1
    assert runtime.elapsed_s(stop, start) < 0
    runtime.synchronize()
    for event in (start, stop):
        runtime.destroy(event)


def test_devices_are_named_by_pci_address(runtime: native.Runtime) -> None:
    assert runtime.device_at("0000:04:00.0") == 1
    runtime.use(1)
    assert runtime.cache_bytes(0) == (62914560 if runtime.platform == "cuda" else None)


def test_an_error_has_the_runtimes_words(runtime: native.Runtime, library: Path) -> None:
    prefix = "hip" if runtime.platform == "rocm" else "cuda"
    with pytest.raises(UndecidedError, match=rf"{prefix}Malloc: out of memory \(2\)"):
        runtime.allocate(1 << 40)
    with pytest.raises(UndecidedError, match=rf"{prefix}SetDevice: invalid argument \(101\)"):
        runtime.use(7)
    left = getattr(ctypes.CDLL(str(library)), f"{prefix}GetLastError")()
    assert left == 0, "the next one who asks the runtime would take the error for its own"


def test_memory_reaches_another_process(runtime: native.Runtime, library: Path) -> None:
    """The 64-byte handle goes by value; what the child writes is seen here, at the same bytes."""
    pointer = runtime.allocate(4096)
    try:
        runtime.fill(pointer, 0xAB, 4096)
        exported = runtime.export(pointer)
        assert len(exported) == native.HANDLE_BYTES
        child = (
            "import sys, ctypes; from pathlib import Path; from solbench.device.native import Runtime\n"
            "runtime = Runtime(sys.argv[1], Path(sys.argv[2])); at = runtime.open(bytes.fromhex(sys.argv[3]))\n"
            "assert ctypes.string_at(at, 4096) == b'\\xab' * 4096\n"
            "source = ctypes.create_string_buffer(b'from the child'); runtime.copy(at, ctypes.addressof(source), 14)\n"
            "runtime.close(at)"
        )
        command = [sys.executable, "-c", child, runtime.platform, str(library), exported.hex()]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        seen = ctypes.create_string_buffer(16)
        runtime.copy(ctypes.addressof(seen), pointer, 16)
        assert seen.raw == b"from the child\xab\xab"
    finally:
        runtime.free(pointer)
    with pytest.raises(UndecidedError, match="IpcGetMemHandle"):
        runtime.export(pointer)


def test_nothing_loaded_later_is_called_instead(runtime: native.Runtime, library: Path, tmp_path: Path) -> None:
    """A candidate's library of the same names, loaded for everyone, is not what the bound functions call."""
    liar = tmp_path / "liar.cpp"
    names = [f'extern "C" int {prefix}EventElapsedTime(float* ms, void*, void*) {{ *ms = 0; return 0; }}'
             for prefix in ("hip", "cuda")]  # fmt: skip
    liar.write_text("\n".join(names))
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "liar.so", liar], check=True, timeout=120)
    ctypes.CDLL(str(tmp_path / "liar.so"), mode=ctypes.RTLD_GLOBAL)
    start, stop = runtime.event(), runtime.event()
    runtime.record(start)
    time.sleep(0.01)
    runtime.record(stop)
    assert runtime.elapsed_s(start, stop) >= 0.01


def test_what_cannot_be_bound_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="absolute path"):
        native.Runtime("rocm", Path("libamdhip64.so"))
    with pytest.raises(UnsupportedError, match="nothere"):
        native.Runtime("rocm", tmp_path / "nothere.so")
    with pytest.raises(UnsupportedError, match="cudaSetDevice"):
        native.Runtime("cuda", Path(_ctypes.__file__))


def test_the_runtime_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_package_folders", lambda _: [])
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    library = tmp_path / "lib" / "libamdhip64.so"
    library.parent.mkdir()
    library.touch()
    assert native.locate("rocm") == library
    packaged = tmp_path / "torch" / "lib" / "libamdhip64.so"
    packaged.parent.mkdir(parents=True)
    packaged.touch()
    monkeypatch.setattr(native, "_package_folders", lambda _: [packaged.parent])
    assert native.locate("rocm") == packaged, "PyTorch's own runtime comes first"


def test_the_runtime_that_is_mapped_comes_first(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = tmp_path / "libcudart.so.13"
    shutil.copy(library, mapped)
    ctypes.CDLL(str(mapped))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "other"))
    assert native.locate("cuda") == mapped


def test_no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_package_folders", lambda _: [])
    monkeypatch.delenv("ROCM_PATH", raising=False)
    if not Path("/opt/rocm").exists():
        with pytest.raises(UnsupportedError, match=r"libamdhip64\.so: not found; install PyTorch for rocm"):
            native.locate("rocm")
