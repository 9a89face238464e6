"""What a candidate becomes on a card: its launches for one workload, and each kernel with what its code shows."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from solbench.model.record import Descriptor, Value

SCHEMA: Final = "solbench.code.v1"
KERNEL_SCHEMA: Final = "solbench.kernel.v1"

Status = Literal["COMPILED", "COMPILE_ERROR", "RUNTIME_ERROR", "UNSUPPORTED"]


class Argument(Value):
    """An argument that remains at run time, and what the compiler was told of its value (``tt.divisibility``: 16)."""

    name: str
    type: str
    hints: dict[str, int]


class KernelLaunch(Value):
    """One kernel as host code launches it, ``count`` times alike; ``fault`` in place of the rest if it did not compile.

    ``config``: of the autotuner, each of which is here; null for a kernel that is not tuned. ``grid``: work-groups by
    dimension, null where host code was not run (HIP).
    """

    kernel: str
    config: str | None
    count: int = Field(ge=1)
    grid: tuple[int, int, int] | None
    arguments: tuple[Argument, ...]
    constexprs: dict[str, Any]
    stages: int | None
    evidence: Descriptor | None
    fault: str | None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.evidence is None) == (self.fault is None):
            raise ValueError("exactly one of evidence and fault is null")
        return self


class Code(Value):
    """One candidate on one workload and target. ``library_calls``: what PyTorch computes itself, counted; null where
    host code was not run. ``status``: RUNTIME_ERROR also where a kernel would not launch.
    """

    schema_: Literal["solbench.code.v1"] = Field(SCHEMA, alias="schema")
    problem: str
    workload: str
    solution: str
    target: str
    instance: Descriptor
    candidate: Descriptor
    toolchain: dict[str, Any]
    status: Status
    reason: str | None
    launches: tuple[KernelLaunch, ...]
    library_calls: dict[str, int] | None

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if (self.status == "COMPILED") != (self.reason is None):
            raise ValueError("reason: null for what is compiled, and only for that")
        if self.status == "COMPILED" and not self.launches:
            raise ValueError("launches: none, though it is compiled")
        return self


class LaunchFacts(Value):
    """What the code object alone does not tell. ``threads``: a work-group; ``dots``: operand and accumulator types of
    the products in the kernel's source, null where unknown."""

    threads: int = Field(ge=1)
    dynamic_lds_bytes: int = Field(ge=0)
    dots: tuple[tuple[str, str, str], ...] | None


class Kernel(Value):
    """One kernel: its code object, the compiler's text, and ``evidence``, which is derived from both."""

    schema_: Literal["solbench.kernel.v1"] = Field(KERNEL_SCHEMA, alias="schema")
    kernel: str
    target: str
    launch: LaunchFacts
    code_object: Descriptor
    assembly: Descriptor
    evidence: dict[str, Any]
