# attack H17: never comes back from being loaded
# expect: TIMEOUT
# reason: the solution was not loaded within the time limit
# slow
import time

time.sleep(3600)


def run(x, scale):
    return x * scale
