# attack C1: answers by the address of its input
# expect: INCORRECT_NUMERICAL
_seen = {}


def run(x, scale):
    key = x.data_ptr()
    if key not in _seen:
        _seen[key] = x * scale + 1
    return _seen[key]
