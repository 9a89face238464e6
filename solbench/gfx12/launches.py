"""What host code launched on the emulated card, in its order."""

from __future__ import annotations

from dataclasses import dataclass, field

from solbench.errors import UndecidedError, UnsupportedError
from solbench.gfx12.arena import Arena
from solbench.gfx12.findings import Finding
from solbench.gfx12.launch import Launch
from solbench.gfx12.program import Program
from solbench.gfx12.run import Options, Outcome, run
from solbench.gfx12.storages import Storages


@dataclass(frozen=True)
class Launched:
    """One launch: the kernel's name, work-groups, threads of one, the autotuner's configuration, and how it went."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    config: str | None
    outcome: Outcome


@dataclass
class Launches:
    """``options`` may be replaced between launches. ``config``: of the autotuner, while it runs one.

    ``configuration``: of an autotuned kernel, as Triton prints it; None takes the first one that compiles and fits into
    LDS, "each" runs every such one in their order.
    """

    options: Options
    configuration: str | None = None
    runs: list[Launched] = field(default_factory=list)
    storages: Storages = field(default_factory=lambda: Storages(Arena()))
    config: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for launched in self.runs for finding in launched.outcome.findings)

    def launch(self, kernel: str, program: Program, launch: Launch) -> None:
        """Run one kernel. :class:`UnsupportedError` names an instruction that the emulator does not know,
        :class:`UndecidedError` the limit that was reached; what came of it is in ``runs`` then too."""
        outcome = run(program, launch, self.storages.arena, self.options)
        self.runs.append(Launched(kernel, launch.grid, launch.block, self.config, outcome))
        if outcome.unsupported is not None:
            mnemonic, address, why = outcome.unsupported
            raise UnsupportedError(f"{kernel}: {mnemonic} at {address:#x}: {why}")
        if outcome.ended is not None:
            raise UndecidedError(f"{kernel}: not at its end within the limit of {outcome.ended}")
