# attack T17: computes for the first of several calls that follow each other at once, and hands its result out again
# expect: INCORRECT_NUMERICAL
import time

_last = None
_ended = 0.0


def run(x, scale):
    global _last, _ended
    if _last is None or time.perf_counter() - _ended > 200e-6:
        _last = x * scale + 1
    _ended = time.perf_counter()
    return _last
