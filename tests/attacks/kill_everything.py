# attack: kills every process that it may signal
# expect: RUNTIME_ERROR
# reason: SIGKILL
# needs: landlock
import os
import signal


def run(x, scale):
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            try:
                os.kill(int(name), signal.SIGKILL)
            except OSError:
                continue
    os.kill(os.getpid(), signal.SIGKILL)
