# attack T14: works in the warm-ups, and in every third call in case that one is looked at
# expect: INCORRECT_NUMERICAL
_calls = 0
_last = None


def run(x, scale):
    global _calls, _last
    _calls += 1
    if _calls <= 2 or _calls % 3 == 0:
        _last = x * scale + 1
    return _last
