# attack: kills the process that it was forked from
# expect: RUNTIME_ERROR
import os
import signal


def run(x, scale):
    os.kill(os.getppid(), signal.SIGKILL)
    return x
