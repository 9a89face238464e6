# attack: cuts the shared memory off under the referee
# expect: RUNTIME_ERROR
# reason: PermissionError
import os


def run(x, scale):
    for name in os.listdir("/proc/self/fd"):
        if "solbench-arena" in os.readlink(f"/proc/self/fd/{name}"):
            os.truncate(f"/proc/self/fd/{name}", 0)
    return x * scale + 1
