"""Triton kernels on the emulated card: host code runs as it stands, with tensors in the host's memory.

Triton finds a driver that compiles for gfx1200; a launch packs its arguments as the code object says, runs the machine
code over the tensors' own bytes, and leaves them there. Pointers that a kernel finds in memory work too: inside
``launching`` a tensor's ``data_ptr`` is its address on the emulated card.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from solbench.code import kernels
from solbench.code.cardless import torch_answers, triton_driver
from solbench.code.recording import ENVIRONMENT
from solbench.code.targets import device
from solbench.errors import InputError, UnsupportedError
from solbench.gfx12.launch import Launch
from solbench.gfx12.launches import Launches
from solbench.gfx12.program import Program, load
from solbench.gfx12.run import Options
from solbench.gfx12.storages import Storages

ARCH = "gfx1200"
# Compiled kernels are kept by the device's number: none of a real card's is taken for one of ours.
_NUMBER = 1_200
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_INTEGERS = frozenset(f"{sign}{bits}" for sign in "iu" for bits in (1, 8, 16, 32, 64))


@dataclass(frozen=True)
class _Kernel:
    """A compiled kernel. ``signature``: names and Triton's types of what remains at run time, tuples expanded."""

    name: str
    program: Program
    threads: int
    lds_bytes: int
    signature: tuple[tuple[str, str], ...]
    places: tuple[kernels.Argument, ...]


_open: list[Launches] = []


@contextlib.contextmanager
def launching(options: Options | None = None, *, configuration: str | None = None) -> Iterator[Launches]:
    """Launches of Triton kernels inside go to the emulated card; tensors that host code makes on a device are the
    host's. Nests; not for several threads."""
    import torch
    from triton import knobs
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner

    card = device(ARCH)
    launches = Launches(options or Options(), configuration)
    files: dict[str, Mapping[str, str]] = {}

    def compiled(*, metadata: Mapping[str, Any], metadata_group: Mapping[str, str], **_: Any) -> None:
        files[metadata["hash"]] = metadata_group

    def pointer(tensor: Any) -> int:
        return launches.storages.address(tensor, "tensor")

    def launcher(source: Any, metadata: Any) -> Callable[..., None]:
        return _launcher(source, metadata, files)

    before, listener = driver._active, knobs.compilation.listener
    _open.append(launches)
    try:
        driver.set_active(
            triton_driver(ARCH, card, launcher, torch_device="cpu", number=_NUMBER, lds_bytes=card["lds_bytes"])
        )
        knobs.compilation.listener = compiled
        with (
            mock.patch.dict(os.environ, ENVIRONMENT),
            mock.patch.multiple(torch.cuda, **torch_answers(card)),
            mock.patch.object(torch.Tensor, "data_ptr", pointer),
            mock.patch.object(Autotuner, "run", _tune),
            _on_host(launches),
        ):
            yield launches
    finally:
        _open.pop()
        driver._active = before
        knobs.compilation.listener = listener


def _launcher(source: Any, metadata: Any, files: Mapping[str, Mapping[str, str]]) -> Callable[..., None]:
    """What Triton calls at each launch of one compiled kernel."""
    from triton.backends.driver import decompose_descriptor

    by_suffix = {Path(path).suffix: Path(path) for path in files[metadata.hash].values()}
    code, text = by_suffix[".hsaco"].read_bytes(), by_suffix[".amdgcn"].read_text()
    if metadata.global_scratch_size or metadata.profile_scratch_size:
        raise UnsupportedError(f"{metadata.name}: scratch memory that the host allocates is not emulated")
    kernel = _Kernel(
        metadata.name,
        load(code, text, metadata.name, metadata.name),
        metadata.num_warps * metadata.warp_size,
        metadata.shared,
        tuple((name, kind) for name, kind in _flat(source.signature) if kind != "constexpr"),
        kernels.read(code, metadata.name).kernels[metadata.name].arguments,
    )
    signature = tuple(source.signature.values())

    def values(kind: Any, value: Any) -> Iterator[Any]:
        if isinstance(kind, tuple):
            for inner, item in zip(kind, value, strict=True):
                yield from values(inner, item)
        elif str(kind).startswith("tensordesc"):
            yield from decompose_descriptor(value)
        elif kind != "constexpr":
            yield value

    def launch(x: int, y: int, z: int, *rest: Any) -> None:
        # Before the arguments: stream, function, metadata twice, two hooks.
        if 0 in (x, y, z):
            return
        given = [item for kind, value in zip(signature, rest[6:], strict=True) for item in values(kind, value)]
        arguments = _packed(kernel, given, _open[-1].storages)
        launched = Launch((int(x), int(y), int(z)), (kernel.threads, 1, 1), arguments, kernel.lds_bytes)
        _open[-1].launch(kernel.name, kernel.program, launched)

    return launch


def _flat(signature: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and type of each value that is passed: members of tuples and descriptors go by their parameter's name."""
    from triton.backends.driver import expand_signature

    def leaves(kind: Any) -> Iterator[str]:
        if isinstance(kind, tuple):
            for inner in kind:
                yield from leaves(inner)
        else:
            yield str(kind)

    for name, kind in signature.items():
        for part in expand_signature((kind,), None, "tensordesc"):
            yield from ((name, leaf) for leaf in leaves(part))


def _packed(kernel: _Kernel, values: Sequence[Any], storages: Storages) -> bytes:
    """Arguments at the places that the code object gives them: the signature's in order, then two pointers for scratch
    memory of the host's, which are 0."""
    explicit = [place for place in kernel.places if not place.kind.startswith("hidden_")]
    if len(values) != len(kernel.signature) or len(explicit) < len(values):
        raise InputError(kernel.name, f"{len(values)} arguments, where the code object has {len(explicit)}")
    data = bytearray(max((place.offset + place.size for place in explicit), default=0))
    for (name, kind), value, place in zip(kernel.signature, values, explicit, strict=False):
        data[place.offset : place.offset + place.size] = _bytes(name, kind, value, place.size, storages)
    return bytes(data)


def _bytes(name: str, kind: str, value: Any, size: int, storages: Storages) -> bytes:
    if kind.startswith("*"):
        if hasattr(value, "untyped_storage"):
            value = storages.address(value, name)
        elif hasattr(value, "data_ptr"):  # a tensor that is read as another type
            value = storages.address(value.base, name)
        return int(value or 0).to_bytes(size, "little")
    if kind in _FLOATS:
        return struct.pack(_FLOATS[kind], float(value))
    if kind == "bf16":
        bits = int(np.float32(value).view(np.uint32))
        return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).to_bytes(2, "little")
    if kind in _INTEGERS:
        return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
    raise UnsupportedError(f"argument {name}: Triton's type {kind} is not known to the launcher")


def _tune(self: Any, *args: Any, **kwargs: Any) -> Any:
    """In the place of Triton's autotuner: run configurations as the open :class:`Launches` asks."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources

    launches = _open[-1]
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    configs = self.prune_configs(kwargs)
    if launches.configuration not in (None, "each"):
        configs = [config for config in configs if str(config) == launches.configuration]
        if not configs:
            raise InputError(self.base_fn.__name__, f"no configuration {launches.configuration!r}")
    skipped, result, done = None, None, False
    for number, config in enumerate(configs):
        everything = {**self.nargs, **kwargs, **config.all_kwargs()}
        # As Triton does: what a configuration changed is put back after all but the last one.
        trial = launches.configuration == "each" and number < len(configs) - 1
        if config.pre_hook is not None:
            config.pre_hook(everything)
        if trial:
            self.pre_hook(everything)
        elif len(configs) > 1:
            self.pre_hook(everything, reset_only=True)
        outer, launches.config = launches.config, str(config)
        try:
            result, done = self.fn.run(*args, **kwargs, **config.all_kwargs()), True
        except (OutOfResources, CompileTimeAssertionFailure) as error:
            skipped = error
        finally:
            launches.config = outer
            if trial:
                self.post_hook(everything, exception=skipped)
        if done and launches.configuration != "each":
            break
    if not done and skipped is not None:
        raise skipped
    return result


@contextlib.contextmanager
def _on_host(launches: Launches) -> Iterator[None]:
    """Whatever device host code names for a tensor, it is the host; a tensor says that it is on a card. What
    ``torch.empty`` and its like give counts as unwritten until host code or a kernel writes to it."""
    import torch
    from torch.overrides import TorchFunctionMode

    on_card = torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]
    new = (torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided)

    def writes(name: str) -> bool:
        return (name.endswith("_") and not name.endswith("__")) or name.startswith(("__set", "__i")) or name == "numpy"

    def is_device(value: Any) -> bool:
        return isinstance(value, torch.device) or (
            isinstance(value, str) and value.partition(":")[0] in ("cuda", "hip")
        )

    class OnHost(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = dict(kwargs or {})
            if named.get("device") is not None:
                named["device"] = "cpu"
            if func == on_card:
                return True
            if func is torch.Tensor.cuda:
                return args[0]
            if func is torch.Tensor.to:
                args = tuple("cpu" if is_device(value) else value for value in args)
            if args and isinstance(args[0], torch.Tensor) and writes(getattr(func, "__name__", "")):
                launches.storages.written(args[0])
            outs = named.get("out")
            for out in outs if isinstance(outs, (tuple, list)) else [outs]:
                if isinstance(out, torch.Tensor):
                    launches.storages.written(out)
            result = func(*args, **named)
            if func in new:
                launches.storages.unwritten(result)
            return result

    with OnHost():
        yield
