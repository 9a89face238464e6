# attack H18: prints without end
# expect: PASSED
import sys


def run(x, scale):
    for _ in range(20):
        sys.stdout.write("x" * 100_000)
    sys.stdout.flush()
    return x * scale + 1
