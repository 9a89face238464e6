# attack H17: never comes back from being loaded
# expect: TIMEOUT
# slow
import time

time.sleep(3600)


def run(x, scale):
    return x * scale
