# honest: half a millisecond more than it needs in every call, and its times say so
import time


def run(x, scale):
    start = time.perf_counter_ns()
    while time.perf_counter_ns() - start < 600_000:
        pass
    return x * scale + 1
