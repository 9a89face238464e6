"""Namespaces through bubblewrap: what hostile code can see and reach. Standard library only.

Inside there are, read-only, the system's programs and libraries, the Python installations that run here and this
package; a few device nodes; a ``/proc`` of its own processes; a network without a way out; and ``/tmp`` and
``/dev/shm`` in memory. Everything in there, processes and files, ends with the first process.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

# Name, and what the kernel calls it in /proc/self/ns.
KINDS = {"user": "user", "mount": "mnt", "PID": "pid", "network": "net", "IPC": "ipc", "UTS": "uts"}
PRIVATE_FOLDER = "/tmp"
# Of /tmp, and of /dev/shm: memory that no limit on address space counts.
_FOLDER_BYTES = 2 << 30
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What the loader and the alternatives of Debian need; how many processors there are, for OpenMP and PyTorch.
_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/sys/devices/system")
_PACKAGE = Path(__file__).resolve().parents[1]


def command(
    reads: Iterable[Path | str] = (), writes: Iterable[Path | str] = (), devices: Iterable[Path | str] = (), *,
    cwd: Path | str = PRIVATE_FOLDER, first: bool = True,
) -> list[str]:  # fmt: skip
    """Start of a command line that runs what follows it in new namespaces, as their first process.

    ``reads`` and ``writes``: further paths that are there, in the same places; so are the device nodes ``devices``. It
    dies with the thread that starts it. ``cwd``: a folder that is there, empty unless it is among the others. ``first``
    false: bubblewrap is the first process, so that what it runs is ended by signals as usual; its exit code is then 128
    and the signal's number.
    """
    arguments = [shutil.which("bwrap") or "bwrap"]
    arguments += ["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--hostname", "solbench"]
    arguments += ["--as-pid-1"] if first else []
    size = str(_FOLDER_BYTES)
    arguments += ["--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"]
    arguments += ["--size", size, "--tmpfs", PRIVATE_FOLDER]
    for path in _SYSTEM:
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        else:
            arguments += ["--ro-bind-try", path, path]
    for path in (*_FILES, *map(str, (*_installations(), _PACKAGE, *reads))):
        arguments += ["--ro-bind-try", path, path]
    for path in map(str, writes):
        arguments += ["--bind", path, path]
    for path in map(str, devices):
        arguments += ["--dev-bind", path, path]
    return [*arguments, "--dir", str(cwd), "--remount-ro", "/dev", "--remount-ro", "/"]


def _installations() -> list[str]:
    """Folders of this interpreter, of the one that its environment was made from, and of the compilers, where they are
    not the system's."""
    from solbench.evaluate import compilers  # not for those inside, which have the standard library only

    interpreter = os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))
    found = [sys.prefix, sys.base_prefix, interpreter, *compilers.folders()]
    # A compiler in ~/bin is no reason to show what is in ~.
    home = os.path.join(os.path.expanduser("~"), "")
    return [path for path in dict.fromkeys(found) if not home.startswith(f"{path}/") and f"{path}/"[:5] != "/usr/"]


@functools.cache
def missing() -> str | None:
    """Why namespaces cannot be had here, or None: tried once, and looked at from inside."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    links = [f"/proc/self/ns/{name}" for name in KINDS.values()]
    try:
        result = subprocess.run(
            [*command(), "readlink", *links], capture_output=True, text=True, timeout=30, check=False, cwd="/",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not run: {error}"
    inside = result.stdout.split()
    if result.returncode != 0 or len(inside) != len(links):
        last = result.stderr.strip().rpartition("\n")[2] or f"exit code {result.returncode}"
        return f"bubblewrap cannot make namespaces: {last}"
    return _shared([os.readlink(link) for link in links], inside)


def _shared(outside: Sequence[str], inside: Sequence[str]) -> str | None:
    """Which namespaces are the same on both sides, as a reason; None when each is new."""
    same = [name for name, here, there in zip(KINDS, outside, inside, strict=True) if here == there]
    return f"bubblewrap made no new {', '.join(same)} namespace" if same else None
