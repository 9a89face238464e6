# attack C3: answers by the shape of its input
# expect: INCORRECT_NUMERICAL
_cache = {}


def run(x, scale):
    if tuple(x.shape) not in _cache:
        _cache[tuple(x.shape)] = x * scale + 1
    return _cache[tuple(x.shape)]
