"""A session: the referee, the warm interpreters that workers are forked from, the floor, what isolates them.

Everything is started when first needed, replaced when it dies, and gone when the session is closed.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from solbench import canonical
from solbench.device import cpu
from solbench.errors import UndecidedError
from solbench.evaluate import arena, build, sandbox
from solbench.evaluate.arena import Shared
from solbench.evaluate.held import HeldCard, hold
from solbench.evaluate.processes import Referee, RefereeFailure
from solbench.evaluate.sampling import measure_floor, measure_flush
from solbench.evaluate.timing import Floor
from solbench.evaluate.turns import Limits, load
from solbench.evaluate.workers import Worker, WorkerFailure, Zygote
from solbench.model.solution import Solution
from solbench.model.trace import Method

FLOOR_SAMPLES, FLOOR_ATTEMPTS = 9, 3
Transport = Literal["ipc", "host"]
_EMPTY_PYTHON = "def run():\n    pass\n"
_EMPTY_NATIVE = 'extern "C" void run() {}\n'


class Session:
    """Processes and facts that evaluations on one target share. Use as a context manager.

    On a GPU target the session owns the card from its start to its end: see :func:`solbench.evaluate.held.hold`.
    :class:`solbench.errors.UndecidedError` where there is no sandbox, unless ``unsandboxed``.
    """

    _open_sessions = 0

    def __init__(
        self, limits: Limits | None = None, cache: Path | None = None, *, target: str = "cpu",
        unsandboxed: bool = False, card: HeldCard | None = None, uuid: str | None = None, lock_dir: Path | None = None,
        transport: Transport = "ipc", emulated: bool = False,
    ) -> None:  # fmt: skip
        """``card``: one that is held already; without it the one of ``uuid`` and ``lock_dir`` is taken. ``transport``:
        how a card's workers get the shared memory, as device memory or copied from the host. ``emulated``: no card is
        taken; kernels run on the emulated one."""
        self.target = target
        self.card = card
        self.emulated = emulated
        self._uuid, self._lock_dir = uuid, lock_dir
        self.transport: Transport = transport if target != "cpu" else "ipc"
        self._stack = ExitStack()
        self.isolation = sandbox.isolation(unsandboxed)
        self.limits = limits or Limits()
        self.cache = cache
        self.threads = cpu.thread_count()
        self._folder: Path | None = None
        self._referee: Referee | None = None
        self._zygotes: dict[bool, Zygote] = {}
        self._floors: dict[bool, Floor] = {}
        self._libraries: dict[str, bytes] = {}
        self._flush_limit_s: float | None = None

    def __enter__(self) -> Session:
        # The nonce lives in this process: same-user processes may not read its memory while a session is open.
        if self.target != "cpu" and self.card is None and not self.emulated:
            self.card = self._stack.enter_context(hold(self.target, uuid=self._uuid, lock_dir=self._lock_dir))
        Session._open_sessions += 1
        sandbox.set_dumpable(False)
        if not self.isolation.namespaces:  # which have their temporary files in memory
            self._folder = Path(tempfile.mkdtemp(prefix="solbench-"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.close()
        finally:
            self._stack.close()  # the card last: nothing of ours runs on it any more

    def close(self) -> None:
        """End every process and remove the folder."""
        self.replace_processes()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        Session._open_sessions -= 1
        sandbox.set_dumpable(Session._open_sessions == 0)

    def referee(self) -> Referee:
        """The trusted process; a new one if the last has died."""
        if self._referee is None or not self._referee.alive():
            if self._referee is not None:
                self._referee.close()
            written = self.card.flush_bytes if self.card else cpu.flush_bytes()
            self._referee = Referee(self.threads, written, self._device(written))
            self._flush_limit_s = None
        return self._referee

    def _device(self, flush_bytes: int) -> dict[str, Any] | None:
        """What referee and workers are told of the card: see :func:`solbench.evaluate.compute.compute`."""
        if self.card is None:
            return None
        return {**self.card.config, "transport": self.transport, "flush_bytes": flush_bytes}

    def labels(self) -> tuple[str, ...]:
        """What a trace says of the card and of how its memory is shared; nothing on the host."""
        if self.card is None:
            return ()
        early = "copied from host memory, so inputs reach the worker before the call's window"
        return (*self.card.labels, f"shared memory: {'device memory' if self.transport == 'ipc' else early}")

    @property
    def flush_bytes(self) -> int:
        """What a flush writes."""
        return self.referee().flush_bytes

    @property
    def method(self) -> Method:
        """How a call's time is taken: see :class:`solbench.model.trace.Timing`."""
        return self.card.method if self.card else "cpu_clock"

    def flush_limit_s(self) -> float | None:
        """Seconds that a flush may take on a card where nothing else runs; None on the host.

        Taken when the referee is new and no candidate is there yet.
        """
        if self.card is not None and self._flush_limit_s is None:
            self._flush_limit_s = measure_flush(self.referee(), self.limits)
            self.referee().ask({"op": "quiet"}, self.limits.reference_s)
        return self._flush_limit_s

    def share(self, size_bytes: int) -> Shared:
        """Memory for workloads of up to so many bytes; what was shared before is gone. The caller closes it.

        On a card it lives as long as the referee.
        """
        if self.card is None:
            return Shared(arena.create(size_bytes))
        self.flush_limit_s()
        if self.transport == "host":
            return Shared(arena.create(size_bytes), staged=True)
        handle = self.referee().ask({"op": "share", "size": max(size_bytes, arena.ALIGNMENT)}, self.limits.reference_s)
        return Shared(arena.create(arena.ALIGNMENT), str(handle["handle"]))

    def available_memory(self) -> int:
        """Bytes that tensors may take where calls run."""
        if self.card is None:
            return arena.available_memory()
        return int(self.referee().ask({"op": "available"}, self.limits.reference_s)["bytes"])

    def observe(self) -> dict[str, Any] | None:
        """Clocks, power and temperature now: those fields of :class:`solbench.model.trace.Observation` that are told;
        None where nothing is."""
        if self.card is not None:
            return self.card.observe()
        hertz = cpu.clock_hz()
        return None if hertz is None else {"cpu_hz": hertz}

    def zygote(self, torch: bool) -> Zygote:
        """The interpreter that workers with or without torch are forked from."""
        zygote = self._zygotes.get(torch)
        if zygote is None or not zygote.alive():
            if zygote is not None:
                zygote.close()
            landlock = bool(self.isolation.landlock)
            access = self.card.access if self.card else None
            self._zygotes[torch] = zygote = Zygote(
                self._folder, self.threads, torch=torch, landlock=landlock, card=access
            )
        return zygote

    def renew(self) -> None:
        """Let the next workers come from newly started interpreters: what differs between processes differs again."""
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()

    def replace_processes(self) -> None:
        """Start over with processes that no candidate has touched."""
        self.renew()
        if self._referee is not None:
            self._referee.close()
            self._referee = None

    def start(self, solution: Solution, memory: Shared, *, trusted: bool, heap_bytes: int = 0) -> Worker:
        """A worker for one solution over shared memory, its candidate loaded, frozen; on the host with ``heap_bytes``
        of heap for the temporaries of the largest workload that it will see.

        :class:`WorkerFailure` when it does not load; :class:`solbench.evaluate.build.BuildFailure` when it does not
        compile.
        """
        path, _, function = solution.spec.entry_point.partition("::")
        native = is_native(solution)
        # Importing torch takes seconds: the two processes that do start side by side.
        self.referee()
        files = {f"src/{source.path}": source.content.encode() for source in solution.sources}
        if native:
            files = (
                hip_files(solution, self.limits.compile_s) if self.emulated else {"library.so": self.library(solution)}
            )
        zygote = self.zygote(torch=self.emulated or not native)
        config = {
            "language": ("hip" if self.emulated else "native") if native else "python",
            "device": {"emulated": True} if self.emulated else self._device(self.flush_bytes),
            "function": function,
            "entry": "library.so" if native else f"src/{path}",
            "destination_passing_style": solution.spec.destination_passing_style,
            "interpreted": self.interprets(solution),
        }
        worker = zygote.spawn(config, files, memory.descriptor, trusted=trusted)
        try:
            # A card's temporaries are not in the heap, and their allocator keeps them.
            load(worker, self.limits, heap_bytes if memory.on_host else 0)
        except WorkerFailure as error:
            worker.end()
            detail = worker.without_folder(f"{worker.log.text()}\n{error.detail}".strip())
            raise WorkerFailure(error.status, error.reason, detail) from None
        return worker

    def interprets(self, solution: Solution) -> bool:
        """Whether a candidate's Triton kernels run under Triton's interpreter: for a verdict, not for a time."""
        return self.card is None and not self.emulated and "triton" in solution.spec.languages

    def library(self, solution: Solution) -> bytes:
        """The built library of a native solution."""
        key = solution.model_dump_json(include={"spec", "sources"})
        if key not in self._libraries:
            zygote = self.zygote(torch=False)
            arch = None if self.card is None else self.target
            limit_s = self.limits.compile_s
            self._libraries[key] = build.build_library(solution, limit_s, zygote, self.cache, arch=arch)
        return self._libraries[key]

    def floor(self, native: bool) -> Floor:
        """Floor of empty calls, native or Python, measured once a session.

        :class:`UndecidedError` when that fails again and again: no candidate has a part in it.
        """
        failures = 0
        while native not in self._floors:
            try:
                self._floors[native] = self._new_floor(native)
            except (WorkerFailure, RefereeFailure) as error:
                failures += 1
                if failures == FLOOR_ATTEMPTS:
                    raise UndecidedError(f"an empty call cannot be timed: {error}") from None
        return self._floors[native]

    def _new_floor(self, native: bool) -> Floor:
        self.flush_limit_s()  # what a card is like that nobody else is on
        memory = Shared(arena.create(arena.ALIGNMENT))
        worker = None
        try:
            worker = self.start(empty_solution(native), memory, trusted=True)
            held = self.transport != "host"
            return measure_floor(worker, self.referee(), FLOOR_SAMPLES, self.limits, hold=held)
        finally:
            if worker is not None:
                worker.end()
            memory.close()

    def floors(self) -> dict[str, dict[str, float]]:
        """Floors of both kinds that can be measured here, for the record; without a compiler only Python's."""
        found: dict[str, dict[str, float]] = {}
        for name, native in (("python", False), ("c", True)):
            try:
                floor = self.floor(native)
            except build.BuildFailure:
                continue
            found[name] = {
                "event_s": floor.event_s, "gap_s": floor.gap_s, "call_s": floor.call_s, "held_s": floor.held_s,
            }  # fmt: skip
        return found

    def estimate(self, problem: Any, workload: Any, enough_s: float, timeout_s: float) -> float:
        """Seconds of one reference call, eagerly, caches as they come; ``timeout_s`` when it takes longer than that.

        :class:`RefereeFailure` when the reference fails.
        """
        message = {
            "op": "estimate", "definition": problem.definition.as_dict(), "workload": workload.as_dict(),
            "folder": str(problem.path.resolve()), "enough_s": enough_s,
        }  # fmt: skip
        referee = self.referee()
        try:
            return float(referee.ask(message, timeout_s)["seconds"])
        except RefereeFailure as error:
            if "no answer within" in error.reason:
                return timeout_s
            raise


def hip_files(solution: Solution, timeout_s: float) -> dict[str, bytes]:
    """What a worker needs of a HIP candidate for the emulated card: its host code as a library over our runtime, and
    device code with the compiler's text. Failures as of :func:`solbench.code.hip.compile_hip`."""
    from solbench.code.hip import compile_hip
    from solbench.gfx12.hip_library import host_library
    from solbench.gfx12.triton_launch import ARCH

    built = compile_hip(solution, ARCH, timeout_s)
    files = {"library.so": host_library(solution, ARCH, timeout_s)}
    units = []
    for number, unit in enumerate(built.units):
        names = {"code": f"{number}.hsaco", "assembly": f"{number}.s"}
        files |= {names["code"]: unit.code, names["assembly"]: unit.assembly.encode()}
        units.append({"source": unit.source, "kernels": unit.kernels, **names})
    return {**files, "hip.json": canonical.dumps({"units": units})}


def is_native(solution: Solution) -> bool:
    """Whether a candidate is a shared library, rather than Python."""
    return not {"pytorch", "triton"} & set(solution.spec.languages)


def empty_solution(native: bool) -> Solution:
    """A candidate that takes nothing and does nothing."""
    path, text = ("empty.cpp", _EMPTY_NATIVE) if native else ("empty.py", _EMPTY_PYTHON)
    spec = {
        "languages": ["cpp" if native else "pytorch"], "entry_point": f"{path}::run",
        "destination_passing_style": True, "binding": "c" if native else None,
    }  # fmt: skip
    sources = [{"path": path, "content": text}]
    fields = {"name": "empty", "definition": "empty", "author": "solbench", "spec": spec, "sources": sources}
    return Solution.load(fields, "empty candidate")
