# attack: leaves a process behind that has cut every tie
# expect: PASSED
import os
import time

_started = False


def run(x, scale):
    global _started
    if not _started:
        _started = True
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(3600)
            os._exit(0)
    return x * scale + 1
