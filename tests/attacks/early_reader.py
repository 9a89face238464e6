# attack T21: a thread that waits for new inputs and works on them before the call
# expect: PASSED
# at least: 0.019
# Neutralised: the thread sees new values only once the call runs, so its 20 ms a result are in every time. Inputs
# elsewhere, those of a batch, it leaves alone.
import threading
import time

_found = None
_ready = threading.Event()
_watched = []


def _watch(x, last):
    global _found
    while True:
        if not bool((x == last).all()):
            last = x.clone()
            time.sleep(0.02)
            _found = last
            _ready.set()
        time.sleep(0.001)


def run(x, scale):
    if not _watched:
        _watched.append(x)
        threading.Thread(target=_watch, args=(x, x.clone()), daemon=True).start()
        return x * scale + 1
    if x is not _watched[0]:
        return x * scale + 1
    _ready.wait()
    _ready.clear()
    return _found * scale + 1
