# attack C8: prepares an input once that is not declared persistent
# expect: INCORRECT_NUMERICAL
_prepared = {}


def run(x, scale):
    weight = _prepared.setdefault(x.data_ptr(), x.double())
    return (weight * scale + 1).float()
