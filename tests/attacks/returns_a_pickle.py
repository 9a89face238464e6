# attack H20: something that runs code where it is unpickled
# expect: INCORRECT_SHAPE
# reason: not a plain torch.Tensor
import os


class _Bomb:
    def __reduce__(self):
        return os._exit, (0,)


def run(x, scale):
    return _Bomb()
