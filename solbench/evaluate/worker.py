"""The hostile side: holds one candidate and nothing else. Standard library only, torch where the candidate needs it.

It receives layouts, never values to compare with; what it answers is a claim that the orchestrator weighs. A sample is
one frame ``go``, one call, one frame ``done`` with this process's own clock around the call, and, for a candidate that
returns its results, one frame ``delivered`` after they were copied into the shared outputs. A batch is one frame
``batch``, several such calls in a row, each with its delivery, and one frame ``done``.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from solbench.errors import SolbenchError
from solbench.evaluate import frames
from solbench.evaluate.compute import Deliver, Gpu, Host, Times, compute
from solbench.evaluate.memory import Memory, Views
from solbench.evaluate.profiler import profiled

# Bound before any candidate is loaded; `_taken` compares them afterwards.
_CLOCKS = {
    name: getattr(time, name)
    for name in ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time")
}
MAX_REASON = 4000
# What may be written to a setting of PyTorch's precision: products of float32 in float32, as the reference has them.
_FULL_PRECISION = ("highest", "ieee", "none", False)
_lowered: list[str] = []
_libc = ctypes.CDLL(None)
Fault = list[str]
# Where kernels run in an interpreter or an emulator: what an exception of theirs is, or None for any other.
_told: Callable[[BaseException], Fault | None] | None = None

_SCALARS = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "bool": ctypes.c_bool, "int16": ctypes.c_int16, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8,
}  # fmt: skip

Call = Callable[[], Any]
# The call with given values of the scalar inputs.
Bind = Callable[[Mapping[str, Any]], Call]
Prepare = Callable[[Memory | None, Mapping[str, Any]], tuple[Bind, Deliver | None]]


class Fail(Exception):
    """The candidate broke a rule of the call: a kind (raised, shape, dtype, lazy) and a reason."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.fault = [kind, reason[-MAX_REASON:]]


def serve(channel: socket.socket, arena: int, config: Mapping[str, Any]) -> None:
    """Answer the orchestrator's frames until it closes the channel.

    ``config``: language, folder, entry (a file below it), function, destination_passing_style, interpreted (Triton
    kernels, by Triton's interpreter), device (see :mod:`solbench.evaluate.compute`). Language: python, native, or hip
    for the emulated card.
    """
    candidate = {"native": _native, "hip": _hip, "python": _python}[config["language"]]
    place: Host | Gpu = Host()
    prepare: Prepare | None = None
    bind: Bind = _bind_nothing
    usual: Call = _nothing
    deliver: Deliver | None = None
    # The usual call with its delivery, for each copy of the slots: what a batch goes through.
    copies: list[tuple[Call, Deliver | None]] = []
    count = touched = 0
    while (received := frames.receive(channel)) is not None:
        message = received[0]
        operation = message["op"]
        if operation == "go":
            fault: Fault | None = None
            result = None
            # Only a stress round has scalars of its own.
            call = usual if message["scalars"] is None else bind(message["scalars"])
            times = Times(0)
            try:
                place.start()
                result = call()
                times = place.stop()
            except BaseException:  # noqa: BLE001 (whatever a candidate raises is its answer)
                fault = _raised()
            count += 1
            fault = fault or _taken()
            if fault is not None:
                flush()
            done = {"op": "done", "sample": message["sample"], "fault": fault, "event_ns": times.event_ns}
            frames.send(channel, {**done, "launch_ns": times.launch_ns, "left_ns": times.left_ns})
            if deliver is not None and fault is None:
                fault = _try(deliver, result)
                # Freed here: once "delivered" is sent this process is stopped, and would free in the next window.
                result = None
                frames.send(channel, {"op": "delivered", "sample": message["sample"], "fault": fault})
        elif operation == "fetch":
            try:
                place.fetch()
                fault = None
            except BaseException:  # noqa: BLE001
                fault = _raised()
            frames.send(channel, {"op": "fetched", "fault": fault})
        elif operation == "batch":
            fault = _batch(copies[: message["calls"]], place)
            count += 1
            fault = fault or _taken()
            if fault is not None:
                flush()
            frames.send(channel, {"op": "done", "sample": message["sample"], "fault": fault})
        elif operation == "load":
            fault = None
            try:
                place = compute(config["device"])
                prepare = candidate(config, place)
                touched = message["heap_bytes"]
                touch_heap(touched)
            except Fail as error:
                fault = error.fault
            except BaseException:  # noqa: BLE001
                fault = _raised()
            flush()
            frames.send(channel, {"op": "loaded", "fault": fault or _taken()})
        elif operation == "workload":
            assert prepare is not None
            bind, usual, deliver = _bind_nothing, _nothing, None
            count = 0
            try:
                if (emulated := _emulated(place)) is not None:
                    emulated.open(message["runs"])
                memory = _mapped(place, message, arena) if message["slots"] else None
                if message["heap_bytes"] > touched:
                    touched = message["heap_bytes"]
                    touch_heap(touched)
                bind, deliver = prepare(memory, message)
                deliver = place.delivering(deliver)
                usual = bind(message["scalars"])
                copies = [(usual, deliver)]
                for slots in message.get("copies", []):
                    bind_copy, deliver_copy = prepare(memory, {**message, "slots": slots})
                    copies.append((bind_copy(message["scalars"]), deliver_copy))
                fault = None
            except Fail as error:
                fault = error.fault
            except BaseException:  # noqa: BLE001
                fault = _raised()
            frames.send(channel, {"op": "ready", "fault": fault})
        elif operation == "close":
            copies = []
            flush()
            emulated = _emulated(place)
            more = {} if emulated is None else {"emulated": emulated.told()}
            frames.send(channel, {"op": "closed", "samples": count, **more})
        elif operation == "profile":
            try:
                answer = {"fault": None, **profiled(usual, place.synchronize)}
            except BaseException:  # noqa: BLE001
                answer = {"fault": traceback.format_exc(limit=0).strip()[-MAX_REASON:]}
            frames.send(channel, {"op": "profiled", **answer})


def _mapped(place: Host | Gpu, message: Mapping[str, Any], arena: int) -> Memory:
    """The shared memory; a card that does not open it now may do so in another process, so that is told apart."""
    try:
        return place.map(message["size"], arena, message["handle"])
    except SolbenchError as error:
        raise Fail("unshared", str(error)) from None


def _batch(copies: list[tuple[Call, Deliver | None]], place: Host | Gpu) -> Fault | None:
    """One call on each copy in a row, until the device is idle. A returned result is delivered before the next call: it
    may be a buffer that the candidate uses again."""
    try:
        for call, deliver in copies:
            result = call()
            if deliver is not None:
                deliver(result)
            result = None
        place.synchronize()
    except Fail as error:
        return error.fault
    except BaseException:  # noqa: BLE001 (whatever a candidate raises is its answer)
        return _raised()
    return None


def touch_heap(size: int) -> None:
    """Map ``size`` bytes of heap, so that the calls that are timed find their temporaries' pages there.

    An allocator that knows its workload has them, as PyTorch's has on a GPU. Without, a call pays for fresh pages or
    does not, as the last one happened to leave the heap (``posix_memalign`` of the GNU C library seldom finds its own
    freed chunks again): 0.5 to 2.5 ms for a sigmoid of 8 MB.
    """
    _libc.malloc.restype, _libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    _libc.free.restype, _libc.free.argtypes = None, [ctypes.c_void_p]
    place = _libc.malloc(size)
    if not place:
        raise MemoryError(f"no heap of {size} bytes")
    ctypes.memset(place, 0, size)
    _libc.free(place)


def _nothing() -> None:
    return None


def _bind_nothing(scalars: Mapping[str, Any]) -> Call:
    return _nothing


def flush() -> None:
    """Write out what the candidate has printed, from Python and from C; never inside a sample's window."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    _libc.fflush(None)


def _raised() -> Fault:
    """The fault of the exception that is being handled."""
    error = sys.exc_info()[1]
    fault = _told(error) if _told is not None and error is not None else None
    if fault is not None:
        return [fault[0], fault[1][:MAX_REASON]]
    return ["raised", traceback.format_exc(limit=-8)[-MAX_REASON:]]


def _try(deliver: Deliver, result: Any) -> Fault | None:
    try:
        deliver(result)
    except Fail as error:
        return error.fault
    except BaseException:  # noqa: BLE001
        return _raised()
    return None


def _taken() -> Fault | None:
    for name, function in _CLOCKS.items():
        if getattr(time, name, None) is not function:
            return ["hack", f"time.{name} was replaced"]
    return ["hack", f"precision was lowered: {_lowered[0]}"] if _lowered else None


def _watch_precision(torch: Any) -> None:
    """Note each write that lowers PyTorch's precision, also one that is taken back before the call ends."""

    def noting(name: str, setter: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*values: Any) -> Any:
            # (value), (value, a detail), or (backend, operation, value)
            value = values[-1] if len(values) > 2 else values[0]
            if value not in _FULL_PRECISION:
                _lowered.append(f"{name} to {value!r}"[:200])
            return setter(*values)

        return noted

    for name, setter in list(vars(torch._C).items()):
        if name.startswith("_set_") and ("tf32" in name or "precision" in name):
            setattr(torch._C, name, noting(name[5:], setter))
    # Settings that have kept the function itself.
    for module in [module for name, module in sys.modules.items() if name.startswith("torch.backends")]:
        for name, property_ in vars(type(module)).items():
            if isinstance(property_, torch.backends.ContextProp) and "tf32" in name:
                property_.setter = noting(name, property_.setter)


def _emulated(place: Host | Gpu) -> Any:
    """The emulated card (:class:`solbench.evaluate.emulated_card.EmulatedCard`) if ``place`` is one."""
    global _told
    if not place.emulated:
        return None
    card: Any = place
    _told = card.fault
    return card


def _hip(config: Mapping[str, Any], place: Host | Gpu) -> Prepare:
    """A HIP candidate on the emulated card."""
    import torch

    prepare: Prepare = _emulated(place).native(config, Views(torch, place.device))
    return prepare


# ---- native candidates: a shared library, called through ctypes, no torch


def _native(config: Mapping[str, Any], place: Host | Gpu) -> Prepare:
    library = ctypes.CDLL(os.path.join(config["folder"], config["entry"]))
    function = getattr(library, config["function"])
    function.restype = None

    def prepare(memory: Memory | None, workload: Mapping[str, Any]) -> tuple[Bind, None]:
        base = memory.pointer() if memory is not None else 0
        places = {slot["name"]: ctypes.c_void_p(base + slot["offset"]) for slot in workload["slots"]}

        def bind(scalars: Mapping[str, Any]) -> Call:
            arguments: list[Any] = [
                places[name] if kind == "tensor" else _SCALARS[kind](scalars[name]) for name, kind in workload["inputs"]
            ]
            arguments += [places[name] for name in workload["outputs"]]
            arguments += [ctypes.c_int64(value) for value in workload["axes"].values()]

            # The call keeps the mapping alive: ctypes knows only the address.
            def call(arguments: tuple[Any, ...] = tuple(arguments), keep: Any = memory) -> None:
                function(*arguments)

            return call

        return bind, None

    return prepare


# ---- Python candidates: torch tensors over the shared memory


def _python(config: Mapping[str, Any], place: Host | Gpu) -> Prepare:
    global _told
    import torch

    if config["interpreted"]:
        from solbench.evaluate import triton_interpreter

        _told = triton_interpreter.fault
        triton_interpreter.install()
    if place.device.startswith("cuda"):
        torch.cuda.set_device(place.device)
        torch.cuda.init()

    path = os.path.join(config["folder"], config["entry"])
    name = os.path.splitext(os.path.basename(path))[0]
    # Last in the path: a source called torch.py or json.py shadows nothing.
    sys.path.append(os.path.join(config["folder"], "src"))
    if name in sys.modules or not name.isidentifier():
        name = f"candidate_{abs(hash(name))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    # Taken before the candidate runs, so that patching torch afterwards changes nothing here.
    kit = _Kit(torch, place)
    emulated = _emulated(place)
    if emulated is not None:
        emulated.triton()
    _watch_precision(torch)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    function = getattr(module, config["function"], None)
    if not callable(function):
        raise Fail("raised", f"{os.path.basename(path)} defines no function {config['function']!r}")

    def prepare(memory: Memory | None, workload: Mapping[str, Any]) -> tuple[Bind, Deliver | None]:
        tensors = {slot["name"]: kit.views.view(memory, slot) for slot in workload["slots"]}
        outputs = {name: tensors[name] for name in workload["outputs"]}
        in_place = bool(config["destination_passing_style"])
        if emulated is not None:
            emulated.give(workload, tensors)

        def bind(scalars: Mapping[str, Any]) -> Call:
            arguments = [tensors[name] if kind == "tensor" else scalars[name] for name, kind in workload["inputs"]]
            arguments += list(outputs.values()) if in_place else []

            def call(function: Any = function, arguments: tuple[Any, ...] = tuple(arguments)) -> Any:
                return function(*arguments)

            return call

        return bind, None if in_place else kit.deliver(outputs)

    return prepare


class _Kit:
    """The few torch names that delivering needs."""

    def __init__(self, torch: Any, place: Host | Gpu) -> None:
        self.tensor, self.strided, self.no_grad = torch.Tensor, torch.strided, torch.no_grad
        self.copy = torch.Tensor.copy_
        self.views = Views(torch, place.device)
        self.place = place

    def deliver(self, outputs: Mapping[str, Any]) -> Deliver:
        """Check what a call returned and copy it into the shared outputs."""
        names = list(outputs)

        def check(result: Any) -> None:
            for name, value in zip(names, _named(result, names)):
                expected = outputs[name]
                if type(value) is not self.tensor:
                    kind = "lazy" if isinstance(value, self.tensor) else "shape"
                    raise Fail(kind, f"{name}: a {type(value).__name__}, not a plain torch.Tensor")
                if value.device != expected.device or value.layout is not self.strided:
                    wanted = f"a strided tensor on {expected.device}"
                    raise Fail("lazy", f"{name}: on {value.device}, {value.layout}, not {wanted}")
                if tuple(value.shape) != tuple(expected.shape):
                    raise Fail("shape", f"{name}: shape {tuple(value.shape)}, declared {tuple(expected.shape)}")
                if value.dtype != expected.dtype:
                    raise Fail("dtype", f"{name}: {value.dtype}, declared {expected.dtype}")
                if value.is_conj() or value.is_neg():
                    raise Fail("lazy", f"{name}: a lazily conjugated or negated view")
                if not value.is_contiguous():
                    raise Fail("shape", f"{name}: strides {tuple(value.stride())}, must be row-major contiguous")
                with self.no_grad():
                    self.copy(expected, value)
            self.place.synchronize()

        return check


def _named(result: Any, names: list[str]) -> list[Any]:
    """Results in declared order: of one value, a tuple or list in that order, or a mapping of exactly these names."""
    if isinstance(result, Mapping):
        if set(result) != set(names):
            raise Fail("shape", f"returned the names {', '.join(map(str, result))}, declared {', '.join(names)}")
        return [result[name] for name in names]
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(values) != len(names):
        raise Fail("shape", f"returned {len(values)} values, declared {len(names)}: {', '.join(names)}")
    return values
