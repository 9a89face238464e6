# honest: prints to both streams
# log: all is well
import sys


def run(x, scale):
    print("all is well")
    print("really", file=sys.stderr)
    return x * scale + 1
