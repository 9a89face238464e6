# honest: prepares a weight once that is declared persistent
# problem: weighted
_prepared = {}


def run(x, w):
    key = (w.data_ptr(), tuple(w.shape))
    if key not in _prepared:
        _prepared[key] = w.double()
    return (x * _prepared[key] + 1).float()
