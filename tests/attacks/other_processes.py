# attack: reads, traces and stops what else is running
# expect: RUNTIME_ERROR
# reason: nobody is open
# needs: PID namespace
import ctypes
import os
import signal

_libc = ctypes.CDLL(None)
_ATTACH, _SEIZE = 16, 0x4206


def _opens(pid):
    for action in (
        *(lambda name=name: open(f"/proc/{pid}/{name}", "rb").read(1) for name in ("mem", "environ", "maps")),  # noqa: SIM115
        *(lambda name=name: os.readlink(f"/proc/{pid}/{name}") for name in ("fd/3", "root", "cwd", "exe")),
        lambda: os.kill(pid, signal.SIGSTOP),
    ):
        try:
            action()
            return True
        except OSError:
            continue
    return any(_libc.ptrace(request, pid, None, None) == 0 for request in (_ATTACH, _SEIZE))


def run(x, scale):
    others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    # The interpreter that workers are forked from, the baseline, and no other.
    if len(others) <= 2 and not any(map(_opens, others)):
        raise RuntimeError("nobody is open")
    return x * scale + 1
