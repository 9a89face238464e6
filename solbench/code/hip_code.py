"""Device code of a HIP solution, as it was compiled. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HipUnit:
    """One source: its path, the code object (ELF), the compiler's own text of it, and the kernels in their order."""

    source: str
    code: bytes
    assembly: str
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class HipCode:
    """``compiler``: see :func:`solbench.code.hip.toolchain`. ``flags``: as given to it, without those that name a
    folder of this run."""

    arch: str
    units: tuple[HipUnit, ...]
    compiler: dict[str, str]
    flags: tuple[str, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(kernel for unit in self.units for kernel in unit.kernels)
