"""Random numbers with a declared seed: ``torch.manual_seed`` inside the reference, or a generator that has one.

Each draw becomes ``solar::random``: distribution, seed, and the stream of draws that it continues. A draw without a
seed is refused, for a reference is a function of its inputs. Nothing is drawn on the meta device; the generator is only
moved on, so that a new seed is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from solar.errors import ExtractionError

_META = torch.device("meta")
_LIBRARY = torch.library.Library("solar", "FRAGMENT")
_LIBRARY.define(
    "random(str distribution, float[] parameters, int seed, int stream, int[] shape, ScalarType dtype) -> Tensor"
)


def _random(
    distribution: str, parameters: list[float], seed: int, stream: int, shape: list[int], dtype: torch.dtype
) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=_META)


_LIBRARY.impl("random", _random, "CompositeExplicitAutograd")

# Draws by the operator's name: distribution and parameters (a name among its arguments, with a default, or a number).
_DRAWN: dict[str, tuple[str, tuple[Any, ...]]] = {
    "rand": ("uniform", (0.0, 1.0)),
    "rand_like": ("uniform", (0.0, 1.0)),
    "randn": ("normal", (0.0, 1.0)),
    "randn_like": ("normal", (0.0, 1.0)),
    "randint": ("integers", (("low", 0), "high")),
    "randint_like": ("integers", (("low", 0), "high")),
    "randperm": ("permutation", ()),
    "uniform_": ("uniform", (("from", 0.0), ("to", 1.0))),
    "normal_": ("normal", (("mean", 0.0), ("std", 1.0))),
    "normal": ("normal", (("mean", 0.0), ("std", 1.0))),
    "random_": ("integers", (("from", 0), "to")),
    "bernoulli": ("bernoulli", ("p",)),
    "bernoulli_": ("bernoulli", (("p", 0.5),)),
    "exponential_": ("exponential", (("lambd", 1.0),)),
    "geometric_": ("geometric", ("p",)),
    "cauchy_": ("cauchy", (("median", 0.0), ("sigma", 1.0))),
    "log_normal_": ("log_normal", (("mean", 1.0), ("std", 2.0))),
}


class Draws:
    """Streams of draws, one for each seeding of a generator. To be entered: it marks PyTorch's own generator for the
    time of a trace, and puts it back."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[torch.Generator, torch.Tensor, int]] = {}
        self._streams = 0

    def __enter__(self) -> Draws:
        own = torch.default_generator
        self._before = own.get_state()
        self._moved(own)
        self._unseeded = own.get_state()
        return self

    def __exit__(self, *_: object) -> None:
        torch.default_generator.set_state(self._before)

    def drawn(self, func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor:
        """Result of a call that draws; :class:`ExtractionError` where its numbers are not determined."""
        given = {
            argument.name: args[position] if position < len(args) else kwargs.get(argument.name, argument.default_value)
            for position, argument in enumerate(func._schema.arguments)
        }
        target = given.get("self")
        if name not in _DRAWN:
            raise ExtractionError(f"aten.{name}: draws random numbers of a kind that has no rule")
        distribution, wanted = _DRAWN[name]
        parameters = [_parameter(name, given, item) for item in wanted]
        seed, stream = self._stream(name, given.get("generator") or torch.default_generator)
        if isinstance(target, torch.Tensor):
            shape, dtype = list(target.shape), given.get("dtype") or target.dtype
        elif name == "randperm":
            shape, dtype = [given["n"]], given.get("dtype") or torch.int64
        else:
            natural = torch.int64 if name == "randint" else torch.float32
            shape, dtype = list(given["size"]), given.get("dtype") or natural
        result = torch.ops.solar.random(distribution, parameters, seed, stream, shape, dtype)
        return target.copy_(result) if name.endswith("_") and isinstance(target, torch.Tensor) else result

    def _stream(self, name: str, generator: torch.Generator) -> tuple[int, int]:
        """Seed, and number of the stream; the generator moves on."""
        state = generator.get_state()
        seen = self._seen.get(id(generator))
        if seen is not None and torch.equal(seen[1], state):
            stream = seen[2]
        else:
            fresh = torch.Generator().manual_seed(generator.initial_seed()).get_state()
            if generator.device.type != "cpu" or torch.equal(state, self._unseeded) or not torch.equal(state, fresh):
                raise ExtractionError(
                    f"aten.{name}: draws random numbers without a seed; a reference must be a function of its inputs "
                    "(call torch.manual_seed in it, or give it a generator that it seeds itself)"
                )
            stream, self._streams = self._streams, self._streams + 1
        self._moved(generator)
        self._seen[id(generator)] = (generator, generator.get_state(), stream)
        return generator.initial_seed(), stream

    def _moved(self, generator: torch.Generator) -> None:
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            torch.rand(1, generator=generator, device="cpu")


def _parameter(name: str, given: Mapping[str, Any], item: Any) -> float:
    key, default = item if isinstance(item, tuple) else (item, None)
    value = given.get(key, default) if isinstance(key, str) else key
    value = default if value is None else value
    if not isinstance(value, (int, float)):
        raise ExtractionError(f"aten.{name}: {key} has to be a number; a tensor of {key} or none is not supported")
    return float(value)
