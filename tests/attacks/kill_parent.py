# attack: kills the process that it was forked from
# expect: RUNTIME_ERROR
import os
import signal
import time


def run(x, scale):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)
    return x
