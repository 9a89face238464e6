# attack H15: takes all memory that it gets
# expect: RUNTIME_ERROR
# reason: Cannot allocate memory
import mmap

_held = []


def run(x, scale):
    while True:
        _held.append(mmap.mmap(-1, 1 << 30))
