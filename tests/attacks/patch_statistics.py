# attack T5: replaces what statistics are made with
# expect: PASSED
# at least: 0.019
import builtins
import statistics
import time

statistics.median = statistics.fmean = lambda values: 1e-9
builtins.sorted = lambda values, **_: [1e-9 for _ in values]


def run(x, scale):
    time.sleep(0.02)
    return x * scale + 1
