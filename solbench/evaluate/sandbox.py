"""What a hostile process is confined by. Standard library only.

Always: resource limits, an empty capability set, no new privileges, a scrubbed environment, a private temporary folder.
Landlock where the kernel has it: writing only below the private folder, no signals to processes outside. Namespaces
where bubblewrap is installed and can make them: ``namespaces.py``. :func:`isolation` decides what a run gets and
refuses one that would have neither; every trace repeats it. :func:`confine` is called in the process itself, before
hostile code runs.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solbench.errors import UndecidedError
from solbench.evaluate import namespaces

MAX_FILE_BYTES = 1 << 30
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446
# Rights of Landlock that change a file system: all of ABI 1 except execute, read_file and read_dir.
_WRITE_RIGHTS = 0b1_1111_1111_0010
_REFER, _TRUNCATE = 1 << 13, 1 << 14
ALWAYS = ("rlimits", "scrubbed environment", "private temporary folder")
_SCOPE_ABSTRACT_SOCKET, _SCOPE_SIGNAL = 1, 2
_FILE_RIGHTS = (1 << 1) | _TRUNCATE
# Variables that a scrubbed environment keeps: where libraries are found, nothing about the run.
_KEPT = ("LD_LIBRARY_PATH", "ROCM_PATH", "CUDA_HOME", "TZ")
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
# Read by the GNU C library when a process starts: freed memory stays with the process, none comes from mmap.
KEEPING_HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 62)}

_libc = ctypes.CDLL(None, use_errno=True)


def environment(folder: str, threads: int) -> dict[str, str]:
    """The scrubbed environment: an allow-list, the private ``folder`` as home and tmp, one thread count for all."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept,
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin")),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "HOME": folder,
        # Who asks the account's name, as torch.compile does, finds no list of accounts in a sandbox.
        "USER": "solbench",
        "LOGNAME": "solbench",
        "TMPDIR": folder,
        "XDG_CACHE_HOME": folder,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        # Unbound, two threads may wake on one processor and spin for each other through whole time slices: on two
        # cores a call of 5 ms took 45 ms at the median.
        "OMP_PROC_BIND": "true",
    }


@dataclass(frozen=True)
class Isolation:
    """What is in force: ``landlock`` is the kernel's ABI or 0, ``lacks`` why this is not the full sandbox, or None."""

    namespaces: bool
    landlock: int
    lacks: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """One name a mechanism, ``unsandboxed`` first where there is neither namespace nor Landlock."""
        names = tuple(f"{kind} namespace" for kind in namespaces.KINDS) if self.namespaces else ()
        names += (f"landlock abi {self.landlock}",) if self.landlock else ()
        return (*(names or ("unsandboxed",)), *ALWAYS)

    @property
    def label(self) -> str:
        """One sentence for a trace."""
        return f"isolation: {', '.join(self.names)}" + (f"; not the full sandbox: {self.lacks}" if self.lacks else "")


def isolation(unsandboxed: bool = False) -> Isolation:
    """What a run on this machine gets; neither namespaces nor Landlock if ``unsandboxed``.

    :class:`UndecidedError` where neither can be had and ``unsandboxed`` does not allow for it.
    """
    if unsandboxed:
        return Isolation(False, 0, "--unsandboxed")
    no_namespaces, landlock = namespaces.missing(), landlock_abi()
    if no_namespaces and not landlock:
        raise UndecidedError(
            f"no sandbox: {no_namespaces}, and this kernel has no Landlock; "
            "apt-get install bubblewrap, or pass --unsandboxed to run code that you trust"
        )
    return Isolation(no_namespaces is None, landlock, no_namespaces or (None if landlock else "no Landlock"))


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """The signal ``number`` for this process when the thread that started it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def set_dumpable(on: bool) -> None:
    """Whether processes of the same user may read this one's memory and descriptors."""
    _libc.prctl(_PR_SET_DUMPABLE, int(on), 0, 0, 0)


def go_first() -> None:
    """When memory runs out the kernel ends this process and its descendants before any other."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def become_reaper() -> None:
    """Descendants whose parent ends become our children, so that none escapes by a double fork."""
    _libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def set_environment(values: Mapping[str, str]) -> None:
    """Replace the environment of this process."""
    for name in list(os.environ):
        if name not in values:
            del os.environ[name]
    os.environ.update(values)


def confine(
    folder: str, *, memory_bytes: int | None, cpu_s: int, landlock: bool = True, devices: Sequence[str] = ()
) -> None:
    """Confine this process and its descendants for good. ``folder`` and the device nodes ``devices`` are the only
    places where it may write, if ``landlock`` may be used and the kernel has it.

    ``memory_bytes`` limits the address space (None: a GPU's runtime reserves more of it than any machine has memory);
    root ignores the limit on the number of processes.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    _limit(resource.RLIMIT_CPU, cpu_s)
    if not devices:  # whose drivers pin host memory
        _limit(resource.RLIMIT_MEMLOCK, 1 << 26)
    _limit(resource.RLIMIT_NPROC, _tasks_of_user() + 1024)
    if memory_bytes is not None:
        _limit(resource.RLIMIT_AS, memory_bytes)
    os.umask(0o077)
    _drop_capabilities()
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if landlock:
        _landlock(folder, devices)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _tasks_of_user() -> int:
    """Threads that this user runs now: the limit on processes counts them all."""
    count, uid = 0, os.getuid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count


def _drop_capabilities() -> None:
    """Root without capabilities can neither trace others nor mount, and writes only what root owns."""
    number = _SYS_CAPSET.get(os.uname().machine)
    if os.geteuid() != 0 or number is None:
        return
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("Ii", 0x20080522, 0)
    if _libc.syscall(number, header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def landlock_abi() -> int:
    """Version of Landlock that the kernel offers, 0 for none."""
    return max(int(_libc.syscall(_SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)), 0)


def _landlock(folder: str, devices: Sequence[str]) -> None:
    """Forbid writing outside ``folder`` and signalling outside this process and its descendants, as far as the
    kernel can."""
    abi = landlock_abi()
    if not abi:
        return
    writes = _WRITE_RIGHTS | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    tcp = 0b11 if abi >= 4 else 0
    scope = _SCOPE_ABSTRACT_SOCKET | _SCOPE_SIGNAL if abi >= 6 else 0
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    attributes = struct.pack("QQQ", writes, tcp, scope)[:size]
    ruleset = _libc.syscall(_SYS_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    try:
        _allow(ruleset, folder, writes)
        for path in ("/dev/null", *devices):
            _allow(ruleset, path, writes if os.path.isdir(path) else writes & _FILE_RIGHTS)
        if devices:
            # CUDA names its threads through /proc and does not start where it cannot. Left open for the life of this
            # process: the rule holds for this directory entry, which the kernel might else forget and make anew.
            os.open("/proc/self/task", os.O_PATH)
            _allow(ruleset, "/proc/self/task", writes & _FILE_RIGHTS)
        if _libc.syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, handle)
        if _libc.syscall(_SYS_LANDLOCK_ADD, ruleset, 1, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), f"landlock_add_rule: {path}")
    finally:
        os.close(handle)
