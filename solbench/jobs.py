"""Many calls of one pure function: from the memo, or computed in processes that die with their caller."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from solbench import canonical, memo
from solbench.errors import InputError, SolbenchError

# What decides a graph; what decides an IR and its attestation. The bound's own modules decide neither.
EXTRACTION = ("solar/extract", "solar/graph.py", "solbench/bounds.py")
CONVERSION = (
    "solar/einsum.py",
    "solar/catalogue.py",
    "solar/graph.py",
    "solar/extract",
    "solar/convert",
    "solar/opaque.py",
    "solar/replay.py",
    "solar/rounding.py",
    "solar/gradients.py",
    "solar/attest.py",
    "solar/small.py",
    "solbench/bounds.py",
    "solbench/inputs.py",
    "solbench/corpus/reduce.py",
    "solbench/corpus/reference.py",
)
# What decides the code of a candidate and its evidence.
COMPILATION = (
    "solbench/code",
    "solbench/model/code.py",
    "solbench/child.py",
    "solbench/device/codeobject.py",
    "solbench/device/elf.py",
)


def mapped(
    root: Path,
    name: str,
    code: str,
    function: Callable[..., dict[str, Any]],
    jobs: Sequence[tuple[Any, ...]],
    *,
    workers: int | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """``function(*job)`` for every job, in their order, and how many were not in the memo below ``root``.

    ``name`` and ``code`` (:func:`code_of`) say whose results these are. ``function`` is a module's, arguments and
    result are plain JSON values. ``workers``: processes, by default one a core.
    """
    from concurrent.futures.process import BrokenProcessPool

    known = memo.Memo(root)
    keys = [memo.key(name, code, _digests(job)) for job in jobs]
    results: dict[int, dict[str, Any]] = {}
    for position, key in enumerate(keys):
        found = known.get(key)
        if found is not None:
            results[position] = found
    missing = [position for position in range(len(jobs)) if position not in results]
    workers = min(len(missing), workers or os.cpu_count() or 1)
    if workers:
        try:
            with worker_pool(workers) as pool:
                futures = {position: pool.submit(function, *jobs[position]) for position in missing}
                for position, future in futures.items():
                    results[position] = future.result()
                    known.put(keys[position], results[position])
        except BrokenProcessPool:
            raise SolbenchError(
                f"{name}: a worker process died (out of memory?); run again, finished work is kept"
            ) from None
    return [results[position] for position in range(len(jobs))], len(missing)


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """So many processes, each of one thread, that die with this one."""
    import multiprocessing

    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_worker_start)


def code_of(paths: Sequence[str], more_tools: Sequence[str] = ()) -> str:
    """Digest of the code below ``paths`` (from the package's root) and of the tools whose version decides results."""
    from importlib.metadata import PackageNotFoundError, version

    tools = []
    for tool, needed in (("torch", True), ("torchview", False), *((tool, True) for tool in more_tools)):
        try:
            tools.append(f"{tool} {version(tool).partition('+')[0]}")
        except PackageNotFoundError:
            if needed:
                raise InputError(tool, "is not installed; run `pip install 'solbench[run]'`") from None
    package_root = Path(__file__).resolve().parent.parent
    return memo.code_digest([package_root / path for path in paths], tools)


def _digests(job: tuple[Any, ...]) -> list[str]:
    return [canonical.digest(canonical.dumps(value)) for value in job]


def _worker_start() -> None:
    """Worker processes die with the one that started them and compute on one thread each."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    import torch

    torch.set_num_threads(1)
