"""In the child: runs a candidate's host code on tensors without storage, and keeps what it would launch.

Triton finds a driver for the target that loads and launches nothing, so each kernel is specialised exactly as that call
specialises it, and compiled by the AMD compiler in Triton's own wheel. Of an autotuned kernel every configuration is
compiled: which one is quickest, only a card can tell.

Sources are imported under :data:`SOLUTION` and Triton's own named :data:`LIBRARY`, wherever both lie: their paths stand
in the debug information of what is compiled.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import math
import os
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from blake3 import blake3

from solbench.code.cardless import torch_answers, triton_driver

SOLUTION, LIBRARY = "/solution", "/triton"
# What decides the machine code beside sources and compiler: pinned to what Triton does by default, and recorded.
ENVIRONMENT = {
    "AMDGCN_USE_BUFFER_ATOMICS": "1", "AMDGCN_USE_BUFFER_OPS": "1", "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_DISABLE_LINE_INFO": "0", "TRITON_F32_DEFAULT": "", "TRITON_INTERPRET": "0",
}  # fmt: skip
MAX_REASON, MAX_LOG = 1_000, 4_000
# Kernels that one call may launch, configurations included.
MAX_LAUNCHES = 4_096
# Of an object in this process: another one each time.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_OF = r"tensor<(?:\d+x)+(\w+)[^>]*>"
_DOT = re.compile(rf"\btt\.dot\b.*: *{_OF} *\* *{_OF} *-> *{_OF}")


class CompileFault(Exception):
    """Triton did not compile a kernel: its name and what Triton said in one line; ``log`` is all of it."""

    def __init__(self, kernel: str, log: str) -> None:
        said = [line.strip() for line in log.splitlines() if line.strip()] or ["no reason"]
        # "at 2:9:", some lines of the source, and then what is wrong with them.
        place = said[0].rstrip(":") if said[0].startswith("at ") else ""
        super().__init__(f"{kernel}: {said[-1]} ({place} of its source)" if place else f"{kernel}: {said[0]}")
        self.log = log


def records(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """One answer a workload: ``workload``, ``launches``, ``library_calls``, and ``fault``: null or [kind, reason, log].

    ``request``: sources (path -> text), entry (file::function), arch, device (what a host may ask of the card),
    limit_s (seconds for one workload, and for loading), workloads (each with uuid and arguments). What was compiled
    lies below ``folder/out`` under its BLAKE3.
    """
    os.environ.update(ENVIRONMENT)
    os.environ.update(TRITON_HOME=str(folder), TRITON_CACHE_DIR=str(folder / "cache"))
    (folder / "out").mkdir(exist_ok=True)
    recorder = _Recorder(folder / "out")
    _install(recorder, request["arch"], request["device"])
    _alarm(request["limit_s"])
    fault: list[str] | None = None
    try:
        function = _load(request["sources"], request["entry"])
    except BaseException as error:  # noqa: BLE001 (a process boundary: whatever the candidate raises is the answer)
        fault = _fault(error)
        yield from (
            {"workload": w["uuid"], "launches": [], "library_calls": {}, "fault": fault} for w in request["workloads"]
        )
        return
    for workload in request["workloads"]:
        _alarm(request["limit_s"])
        recorder.start()
        fault = None
        try:
            with _on_meta(recorder):
                function(*map(_argument, workload["arguments"]))
        except BaseException as error:  # noqa: BLE001 (as above)
            fault = _fault(error)
        yield {
            "workload": workload["uuid"], "launches": recorder.launches,
            "library_calls": dict(sorted(recorder.calls.items())), "fault": fault,
        }  # fmt: skip


def _alarm(seconds: float) -> None:
    """End this process after so many seconds, wherever it is then. A candidate can turn that off; its parent waits
    little longer."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


class _Recorder:
    """Launches of one call. ``config``: of the autotuner, while it tries one."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.files: dict[str, Mapping[str, str]] = {}
        self.start()

    def start(self) -> None:
        self.launches: list[dict[str, Any]] = []
        self.calls: Counter[str] = Counter()
        self.config: str | None = None

    def compiled(self, *, metadata: Mapping[str, Any], metadata_group: Mapping[str, str], **_: Any) -> None:
        """Triton's listener: which files a compilation left, by its hash."""
        self.files[metadata["hash"]] = metadata_group

    def add(self, launch: dict[str, Any]) -> None:
        if len(self.launches) >= MAX_LAUNCHES:
            raise RuntimeError(f"one call launches more than {MAX_LAUNCHES} kernels")
        self.launches.append({**launch, "config": self.config})

    def launcher(self, source: Any, metadata: Any) -> Callable[..., None]:
        """What Triton calls instead of a card: the grid is all that is new at a launch."""
        by_suffix = {Path(path).suffix: Path(path) for path in self.files[metadata.hash].values()}
        kernel = {
            "kernel": metadata.name,
            "threads": metadata.num_warps * metadata.warp_size,
            "dynamic_lds_bytes": metadata.shared,
            "stages": metadata.num_stages,
            "arguments": _arguments(source),
            "constexprs": _constexprs(source),
            "dots": sorted(set(_DOT.findall(by_suffix[".ttir"].read_text()))),
            "code_object": self._keep(by_suffix[".hsaco"].read_bytes()),
            "assembly": self._keep(by_suffix[".amdgcn"].read_bytes()),
        }

        def launch(x: int, y: int, z: int, *_: Any) -> None:
            self.add({**kernel, "grid": [int(x), int(y), int(z)]})

        return launch

    def _keep(self, data: bytes) -> str:
        digest = blake3(data).hexdigest()
        (self.out / digest).write_bytes(data)
        return digest


def _arguments(source: Any) -> list[dict[str, Any]]:
    """Arguments that remain at run time: name, Triton's type, and what the compiler was told of the value."""
    names = list(source.signature)
    hints = {names[path[0]]: dict(attributes) for path, attributes in source.attrs.items() if len(path) == 1}
    listed = {name: {key: int(value) for key, value in sorted(told.items())} for name, told in hints.items()}
    return [
        {"name": name, "type": str(kind), "hints": listed.get(name, {})}
        for name, kind in source.signature.items()
        if kind != "constexpr"
    ]


def _constexprs(source: Any) -> dict[str, Any]:
    names = list(source.signature)
    return {".".join(str(names[path[0]] if step == 0 else part) for step, part in enumerate(path)): _plain(value)
            for path, value in source.constants.items()}  # fmt: skip


def _plain(value: Any) -> Any:
    """A constant as JSON; what has no such form by its text, without an address."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else _ADDRESS.sub("", str(value))


# ---- Triton without a card


def _install(recorder: _Recorder, arch: str, device: Mapping[str, Any]) -> None:
    """Make Triton compile for ``arch`` and launch into ``recorder``."""
    import torch
    import triton
    from triton import knobs
    from triton.compiler import code_generator
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner

    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Every configuration in turn; one that does not compile is skipped where another does, as on a card."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        faults, done, outer = [], 0, recorder.config
        for config in self.prune_configs(kwargs):
            recorder.config = str(config)
            options = config.all_kwargs()
            if config.pre_hook is not None:
                config.pre_hook({**self.nargs, **kwargs, **options})
            try:
                self.fn.run(*args, **kwargs, **options)
                done += 1
            except CompileFault as fault:
                faults.append(fault)
                recorder.add({"kernel": self.base_fn.__name__, "fault": _ADDRESS.sub("", str(fault))[:MAX_REASON]})
            finally:
                recorder.config = outer
        if not done and faults:
            raise faults[0]

    package = str(Path(triton.__file__).parent)
    generator = code_generator.CodeGenerator
    begin = generator.__init__

    def placed(self: Any, *args: Any, file_name: str | None = None, **kwargs: Any) -> None:
        if file_name is not None and file_name.startswith(package):
            file_name = LIBRARY + file_name[len(package) :]
        begin(self, *args, file_name=file_name, **kwargs)

    compile_kernel = triton.compiler.compile

    def compiling(src: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compile_kernel(src, *args, **kwargs)
        except Exception as error:
            raise CompileFault(src.name, str(error).strip() or type(error).__name__) from error

    generator.__init__ = placed
    triton.compiler.compile = compiling
    Autotuner.run = tune
    knobs.compilation.listener = recorder.compiled
    # Too much LDS is a finding about the kernel, not the end of the call.
    driver.set_active(triton_driver(arch, device, recorder.launcher, torch_device="meta", lds_bytes=2**30))
    for name, answer in torch_answers(device).items():
        setattr(torch.cuda, name, answer)


@contextlib.contextmanager
def _on_meta(recorder: _Recorder) -> Iterator[None]:
    """Tensors without storage for every device that is named; what PyTorch would compute itself is counted."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class OnMeta(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = dict(kwargs or {})
            if named.get("device") is not None:
                named["device"] = "meta"
            if func in (torch.Tensor.cuda, torch.Tensor.cpu):
                return args[0] if func is torch.Tensor.cuda else func(*args, **named)
            if func is torch.Tensor.to:
                args = tuple("meta" if _is_device(value) else value for value in args)
            return func(*args, **named)

    class Counted(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = str(func)
            if not (func.is_view or "empty" in name or name.startswith("aten.detach")):
                recorder.calls[name] += 1
            return func(*args, **(kwargs or {}))

    with OnMeta(), Counted():
        yield


def _is_device(value: Any) -> bool:
    import torch

    return isinstance(value, torch.device) or (isinstance(value, str) and value.partition(":")[0] in ("cuda", "hip"))


def _argument(value: Mapping[str, Any]) -> Any:
    """``{"value": …}``, or a tensor without storage of ``shape`` and ``dtype``."""
    import torch

    if "value" in value:
        return value["value"]
    return torch.empty(value["shape"], dtype=getattr(torch, value["dtype"]), device="meta")


# ---- the candidate's sources


class _Sources(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports from a mapping of paths to texts, as if they lay below :data:`SOLUTION`."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = self._path(fullname)
        if found is None:
            base = fullname.replace(".", "/")
            if not any(path.startswith(f"{base}/") for path in self._sources):
                return None
            folder = ModuleSpec(fullname, None, is_package=True)  # without __init__.py
            folder.submodule_search_locations = [f"{SOLUTION}/{base}"]
            return folder
        spec = importlib.util.spec_from_loader(
            fullname, self, origin=f"{SOLUTION}/{found}", is_package=found.endswith("/__init__.py")
        )
        assert spec is not None
        spec.has_location = True
        return spec

    def _path(self, fullname: str) -> str | None:
        base = fullname.replace(".", "/")
        return next((path for path in (f"{base}/__init__.py", f"{base}.py") if path in self._sources), None)

    def get_filename(self, fullname: str) -> str:
        return f"{SOLUTION}/{self._path(fullname)}"

    def get_source(self, fullname: str) -> str:
        path = self._path(fullname)
        if path is None:
            raise ImportError(fullname)
        return self._sources[path]

    def is_package(self, fullname: str) -> bool:
        return (self._path(fullname) or "").endswith("/__init__.py")


def _load(sources: Mapping[str, str], entry: str) -> Callable[..., Any]:
    """The candidate's function. Its own names come last: a source called torch.py shadows nothing."""
    path, _, function = entry.partition("::")
    place = PurePosixPath(path)
    sys.meta_path.append(_Sources(sources))
    if place.parent != PurePosixPath("."):  # what lies beside the entry is importable as such, like for a script
        beside = {str(PurePosixPath(name).relative_to(place.parent)): text for name, text in sources.items()
                  if PurePosixPath(name).is_relative_to(place.parent)}  # fmt: skip
        sys.meta_path.append(_Sources(beside))
    name = place.stem
    if name in sys.modules or not name.isidentifier():
        raise ImportError(f"{path}: a module of that name is loaded already")
    module = importlib.import_module(name)
    found = getattr(module, function, None)
    if not callable(found):
        raise AttributeError(f"{path} defines no function {function!r}")
    return found


def _fault(error: BaseException) -> list[str]:
    """Whether compiling failed or the host's code, why in one line, and the last lines of all that was said."""
    if isinstance(error, CompileFault):
        return ["compile", _ADDRESS.sub("", str(error))[:MAX_REASON], error.log[-MAX_LOG:]]
    text = _ADDRESS.sub("", (str(error).strip().splitlines() or [""])[0])
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return ["host", reason[:MAX_REASON], traceback.format_exc(limit=-6)[-MAX_LOG:]]
