# attack H14: doubles until it is stopped
# expect: TIMEOUT
import os


def run(x, scale):
    while True:
        try:
            os.fork()
        except OSError:
            continue
