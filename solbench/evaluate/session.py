"""A session: the referee, the warm interpreters that workers are forked from, the floor, what isolates them.

Everything is started when first needed, replaced when it dies, and gone when the session is closed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from solbench.device import cpu
from solbench.evaluate import arena, build, sandbox
from solbench.evaluate.processes import Referee, RefereeFailure
from solbench.evaluate.sampling import Limits, load, measure_floor
from solbench.evaluate.timing import Floor
from solbench.evaluate.workers import Worker, WorkerFailure, Zygote
from solbench.model.solution import Solution

FLOOR_SAMPLES = 9
_EMPTY_PYTHON = "def run():\n    pass\n"
_EMPTY_NATIVE = 'extern "C" void run() {}\n'


class Session:
    """Processes and facts that evaluations on the ``cpu`` target share. Use as a context manager.

    :class:`solbench.errors.UndecidedError` where there is no sandbox, unless ``unsandboxed``.
    """

    _open_sessions = 0

    def __init__(self, limits: Limits | None = None, cache: Path | None = None, *, unsandboxed: bool = False) -> None:
        self.isolation = sandbox.isolation(unsandboxed)
        self.limits = limits or Limits()
        self.cache = cache
        self.threads = cpu.thread_count()
        self.flush_bytes = cpu.flush_bytes()
        self._folder: Path | None = None
        self._referee: Referee | None = None
        self._zygotes: dict[bool, Zygote] = {}
        self._floors: dict[bool, Floor] = {}
        self._libraries: dict[str, bytes] = {}

    def __enter__(self) -> Session:
        # The nonce lives in this process: same-user processes may not read its memory while a session is open.
        Session._open_sessions += 1
        sandbox.set_dumpable(False)
        if not self.isolation.namespaces:  # which have their temporary files in memory
            self._folder = Path(tempfile.mkdtemp(prefix="solbench-"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

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
            self._referee = Referee(self.threads, self.flush_bytes)
        return self._referee

    def zygote(self, torch: bool) -> Zygote:
        """The interpreter that workers with or without torch are forked from."""
        zygote = self._zygotes.get(torch)
        if zygote is None or not zygote.alive():
            if zygote is not None:
                zygote.close()
            landlock = bool(self.isolation.landlock)
            self._zygotes[torch] = zygote = Zygote(self._folder, self.threads, torch=torch, landlock=landlock)
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

    def start(self, solution: Solution, memory: int, *, trusted: bool) -> Worker:
        """A worker for one solution over a memory file, its candidate loaded, frozen.

        :class:`WorkerFailure` when it does not load; :class:`solbench.evaluate.build.BuildFailure` when it does not
        compile.
        """
        path, _, function = solution.spec.entry_point.partition("::")
        native = "cpp" in solution.spec.languages
        # Importing torch takes seconds: the two processes that do start side by side.
        self.referee()
        files = {f"src/{source.path}": source.content.encode() for source in solution.sources}
        if native:
            files = {"library.so": self.library(solution)}
        zygote = self.zygote(torch=not native)
        config = {
            "language": "cpp" if native else "python",
            "function": function,
            "entry": "library.so" if native else f"src/{path}",
            "destination_passing_style": solution.spec.destination_passing_style,
        }
        worker = zygote.spawn(config, files, memory, trusted=trusted)
        try:
            load(worker, self.limits)
        except WorkerFailure as error:
            worker.end()
            detail = worker.without_folder(f"{worker.log.text()}\n{error.detail}".strip())
            raise WorkerFailure(error.status, error.reason, detail) from None
        return worker

    def library(self, solution: Solution) -> bytes:
        """The built library of a native solution."""
        key = solution.model_dump_json(include={"spec", "sources"})
        if key not in self._libraries:
            zygote = self.zygote(torch=False)
            self._libraries[key] = build.build_library(solution, self.limits.compile_s, zygote, self.cache)
        return self._libraries[key]

    def floor(self, native: bool) -> Floor:
        """Floor of empty calls, native or Python, measured once a session."""
        if native not in self._floors:
            memory = arena.create(arena.ALIGNMENT)
            worker = None
            try:
                worker = self.start(empty_solution(native), memory, trusted=True)
                self._floors[native] = measure_floor(worker, self.referee(), FLOOR_SAMPLES, self.limits)
            finally:
                if worker is not None:
                    worker.end()
                os.close(memory)
        return self._floors[native]

    def floors(self) -> dict[str, dict[str, float]]:
        """Floors of both kinds that can be measured here, for the record; without a compiler only Python's."""
        found: dict[str, dict[str, float]] = {}
        for name, native in (("python", False), ("c", True)):
            try:
                floor = self.floor(native)
            except build.BuildFailure:
                continue
            found[name] = {"event_s": floor.event_s, "gap_s": floor.gap_s, "call_s": floor.call_s}
        return found

    def observe(self) -> dict[str, Any] | None:
        """Clocks, power and temperature at this moment: fields of :class:`solbench.model.trace.Observation`, those that
        are told; None where nothing is."""
        hertz = cpu.clock_hz()
        return None if hertz is None else {"cpu_hz": hertz}

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
