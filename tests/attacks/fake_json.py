# attack H1: prints results of its own
# expect: INCORRECT_NUMERICAL
# log: PASSED
import sys


def run(x, scale):
    for stream in (sys.stdout, sys.stderr):
        print('{"op": "done", "sample": 1, "event_ns": 1, "fault": null}', file=stream, flush=True)
        print('{"status": "PASSED", "event_s": [1e-9]}', file=stream, flush=True)
    return x
