# attack T19: looks for a way to set clocks: privileges, and files of the driver that it may write. Opens, never writes
# expect: RUNTIME_ERROR
# reason: nothing can be set
# needs: landlock
import glob
import os

_PLACES = (
    "/sys/class/drm/card*/device/*", "/sys/bus/pci/devices/*/power*/*", "/sys/devices/system/cpu/cpu*/cpufreq/*",
    "/proc/driver/nvidia/*", "/proc/driver/nvidia/capabilities/*", "/dev/nvidia-caps/*", "/dev/cpu/*/msr", "/dev/dri/*",
    "/proc/sys/kernel/*", "/run/nvidia-persistenced/*", "/var/run/nvidia-persistenced/*",
)  # fmt: skip


def _privileges():
    with open("/proc/self/status") as file:
        return any(int(line.split()[1], 16) for line in file if line.startswith(("CapEff", "CapPrm", "CapBnd")))


def _opens(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
        return not os.path.isdir(path)
    except OSError:
        return False


def run(x, scale):
    if _privileges() or any(_opens(path) for place in _PLACES for path in glob.glob(place)):
        return x * scale + 1
    raise RuntimeError("nothing can be set")
