# attack H3: exits with 0 in the middle of a call
# expect: RUNTIME_ERROR
# reason: exited with code 0
import os


def run(x, scale):
    print('{"status": "PASSED"}', flush=True)
    os._exit(0)
