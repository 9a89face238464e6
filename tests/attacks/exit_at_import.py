# attack H3: exits with 0 before it is asked anything
# expect: RUNTIME_ERROR
# reason: exited with code 0
import os

os._exit(0)


def run(x, scale):
    return x * scale
