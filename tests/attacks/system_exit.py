# attack: ends the process in the polite way
# expect: RUNTIME_ERROR
# reason: SystemExit
import sys


def run(x, scale):
    sys.exit(0)
