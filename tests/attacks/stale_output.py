# attack T13: works while it may be checked, then returns what it has
# expect: INCORRECT_NUMERICAL
_calls = 0
_last = None


def run(x, scale):
    global _calls, _last
    _calls += 1
    if _calls <= 2:
        _last = x * scale + 1
    return _last
