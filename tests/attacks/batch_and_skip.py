# attack T17: computes once for all inputs that it can find, then hands the results out
# expect: INCORRECT_NUMERICAL
import gc

import torch

_results = []


def run(x, scale):
    if not _results:
        found = [thing for thing in gc.get_objects() if type(thing) is torch.Tensor and thing.shape == x.shape]
        _results.extend(thing * scale + 1 for thing in [*found, x])
    return _results.pop(0) if len(_results) > 1 else _results[0]
