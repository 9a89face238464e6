"""Draws of random numbers while a file loads, on any device and with none of their memory.

Each draw has a seed of its own, counted from the first, so that integers are the same whether the floats around them
are drawn (on the CPU) or not (on the meta device).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

from solar.extract.known import KnownValues, written
from solar.extract.record import LARGEST_VALUES

_DEVICE_METHODS = (torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.pin_memory)


def seed_everything(seed: int) -> None:
    """Seed PyTorch, NumPy where it is there, and the standard library."""
    torch.manual_seed(seed)
    random.seed(seed)
    try:
        import numpy
    except ImportError:  # PyTorch runs without it
        return
    numpy.random.seed(seed)


class Devices(TorchFunctionMode):
    """Whatever device a file names, its tensors are made on this one."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = torch.device(device)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        arguments = dict(kwargs or {})
        if func in _DEVICE_METHODS:
            return args[0]
        if arguments.get("device") is not None:
            arguments["device"] = self._device
        if func is torch.Tensor.to:
            args = tuple(self._device if isinstance(item, (str, torch.device)) else item for item in args)
        return func(*args, **arguments)


def _draw_seed(seed: int, draw: int) -> int:
    return (seed * 1_000_003 + draw) % 2**31


class SeededDraws(TorchDispatchMode):
    """Real draws, each from a seed of its own."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed, self._draws = seed, 0

    def contents(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """What a tensor holds: itself."""
        return tensor

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        arguments = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags:
            arguments.pop("generator", None)
            torch.manual_seed(_draw_seed(self._seed, self._draws))
            self._draws += 1
        return func(*args, **arguments)


class DrawnOnMeta(KnownValues):
    """Draws without their floats: integers, and uniform floats that may become integers, up to a size."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed, self._draws = seed, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return super().__torch_dispatch__(func, types, args, kwargs)
        arguments = {key: value for key, value in (kwargs or {}).items() if key != "generator"}
        if arguments.get("device") is not None:
            arguments["device"] = torch.device("meta")
        result = func(*args, **arguments)
        drawn = self._draws
        self._draws += 1
        name = func._schema.name.partition("::")[2]
        leaves = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
        real = None
        # A uniform draw is a scaled integer on every processor; a normal one is not.
        if all(leaf.numel() <= LARGEST_VALUES for leaf in leaves) and (
            name in ("rand", "rand_like") or not any(leaf.is_floating_point() for leaf in leaves)
        ):
            with _disable_current_modes():
                torch.manual_seed(_draw_seed(self._seed, drawn))
            real = self._evaluate(func, args, arguments)
        if real is None:
            for leaf in written(func, args, arguments):
                self._forget(leaf)
            return result
        contents = [leaf for leaf in tree_flatten(real)[0] if isinstance(leaf, torch.Tensor)]
        for leaf, values in zip(leaves, contents, strict=True):
            self.learn(leaf, values)
        return result
