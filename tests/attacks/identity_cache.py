# attack C2: answers by the identity of its input
# expect: INCORRECT_NUMERICAL
_cache = {}


def run(x, scale):
    if id(x) not in _cache:
        _cache[id(x)] = x * scale + 1
    return _cache[id(x)]
