"""What ``planted.hip`` holds: arguments, what is expected to be found, and results of the twins without the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Fault:
    """``kind``: of the finding at the line that ends with ``FAULT name``; or ``result`` (no finding, and wrong), or
    ``limit`` (it never ends), or ``order`` (its result depends on the order of work-groups).

    ``arguments``: tensors in the order of the host function. ``expected``: of the tensor ``output``, for the twin.
    """

    name: str
    kind: str
    arguments: Callable[[torch.Generator], Tensors]
    expected: Callable[..., torch.Tensor]
    output: str = "y"
    read_only: str = ""


def values(n: int, *outputs: int):
    """x of n values, and y full of -1."""
    return lambda g: {"x": torch.randn(n, generator=g), **{
        name: torch.full((size,), -1.0) for name, size in zip(("y", "between"), outputs, strict=False)}}  # fmt: skip


def turned(x: torch.Tensor) -> torch.Tensor:
    """Each 64 values in reverse."""
    return x.view(-1, 64).flip(1).flatten()


def matrices(g: torch.Generator) -> Tensors:
    return {"a": torch.randn(16, 16, generator=g).half(), "b": torch.randn(16, 16, generator=g).half(),
            "c": torch.zeros(2, 16, 16)}  # fmt: skip


def halves(g: torch.Generator) -> Tensors:
    return {"a": torch.randn(32, 8, generator=g).half(), "b": torch.randn(32, 8, generator=g).half(),
            "c": torch.zeros(2, 32, 8)}  # fmt: skip


def by_lanes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Operands as lanes hold them: lane l has row l % 16 at the eight k from 8 * (l / 16) on; results likewise."""
    left, right = (torch.cat([v[:16], v[16:]], 1).double() for v in (a, b))
    product = left @ right.mT
    return torch.stack([product[lane // 16 * 8 : lane // 16 * 8 + 8, lane % 16] for lane in range(32)])


def lanes_summed(x: torch.Tensor) -> torch.Tensor:
    return x.view(3, 32).double().sum(1)


def passed_on(x: torch.Tensor) -> torch.Tensor:
    result = x.view(3, 32).flip(1).clone()
    result[:, 16:] = 0
    return result.flatten()


def looped(x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = turned(x) + 1
    return x


def bins(x: torch.Tensor) -> torch.Tensor:
    return torch.bincount(x.clamp(max=9), minlength=10).int()


FAULTS = (
    Fault("load_past_end", "out-of-bounds load", values(150, 150), lambda x: torch.cat([x[1:], torch.zeros(1)])),
    Fault("store_past_end", "out-of-bounds store", values(1, 150), lambda x: x + torch.arange(150)),
    Fault("load_before_start", "out-of-bounds load", values(150, 150),
          lambda x: torch.cat([torch.zeros(1), x[:-1]])),
    Fault("bin_too_many", "out-of-bounds atomic",
          lambda g: {"x": torch.randint(0, 11, (150,), generator=g, dtype=torch.int32),
                     "y": torch.zeros(10, dtype=torch.int32)}, bins),
    Fault("null_pointer", "no memory", values(150, 150), lambda x: x),
    Fault("wrapped_offset", "out-of-bounds load", values(64, 192), lambda x: x.repeat(3)),
    Fault("lds_past_end", "out-of-bounds store", values(192, 192), lambda x: x),
    Fault("lds_too_small", "out-of-bounds store", values(192, 192), turned),
    Fault("lds_not_written", "uninitialised memory", values(192, 192), lambda x: turned(x) + 1),
    Fault("lds_without_barrier", "race", values(192, 192), turned),
    Fault("loop_without_barrier", "race", values(192, 192), looped),
    Fault("tree_without_barrier", "race", values(192, 192),
          lambda x: x.view(3, 64).double().sum(1).repeat_interleave(64)),
    Fault("memory_without_barrier", "race", values(192, 192, 192), turned),
    Fault("sum_without_atomic", "race", lambda g: {"x": torch.randn(8, generator=g), "y": torch.zeros(1)},
          lambda x: x.double().sum()[None]),
    Fault("many_writers", "race", values(192, 96), lambda x: x.view(3, 64)[:, :32].flatten()),
    Fault("neighbour", "race", values(192, 192),
          lambda x: (torch.arange(3)[:, None] + torch.arange(64)).float().flatten()),
    Fault("overlap", "race", values(200, 150), lambda x: x[:150] * 2),
    Fault("plain_flag", "race", lambda g: {"x": torch.zeros(1), "y": torch.zeros(192),
                                           "flag": torch.zeros(1, dtype=torch.int32)},
          lambda x: torch.cat([torch.zeros(64), torch.full((128,), 5.0)])),
    Fault("barrier_not_announced", "deadlock", values(64, 192), lambda x: x.repeat(3)),
    Fault("nobody_sets_it", "limit", lambda g: {"flag": torch.zeros(1, dtype=torch.int32), "y": torch.zeros(192)},
          lambda flag: torch.ones(192)),
    Fault("half_a_wave", "partial EXEC", halves, lambda a, b: by_lanes(a, b).repeat(2, 1, 1), "c"),
    Fault("transposed_result", "result", matrices, lambda a, b: (a.double() @ b.double().mT).repeat(2, 1, 1), "c"),
    Fault("sixty_four_lanes", "result", values(96, 3), lanes_summed),
    Fault("lanes_are_off", "result", values(96, 96), passed_on),
    Fault("register_not_written", "uninitialised register", values(192, 192), lambda x: x),
    Fault("odd_atomic", "misaligned", lambda g: {"counts": torch.zeros(3, dtype=torch.int32)},
          lambda: torch.tensor([0, 64, 0], dtype=torch.int32), "counts"),
    Fault("writes_input", "read-only store", values(150, 150), lambda x: x * 2, read_only="x"),
    Fault("last_one_wins", "order", lambda g: {"y": torch.zeros(1, dtype=torch.int32)},
          lambda: torch.tensor([8], dtype=torch.int32)),
    Fault("scratch_not_written", "uninitialised memory",
          lambda g: {"x": torch.randint(20, 32, (192,), generator=g, dtype=torch.int32),
                     "y": torch.zeros(192, dtype=torch.int32)},
          lambda x: x[x.long() & 31] + torch.arange(192, dtype=torch.int32)),
)  # fmt: skip
