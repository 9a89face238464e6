# attack C4: answers by the values of its input, which never come twice
# expect: PASSED
# at least: 0.019
import time

_cache = {}


def run(x, scale):
    key = (float(x.sum()), float(x[0]), scale)
    if key not in _cache:
        time.sleep(0.02)
        _cache[key] = x * scale + 1
    return _cache[key]
