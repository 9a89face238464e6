# attack T21: a thread that waits for the inputs and works before the call
# expect: PASSED
# at least: 0.019
# Neutralised: the thread sees new values only once the call runs, so its 20 ms a result are in every time.
import threading
import time

_result = None
_ready = threading.Event()
_input = []


def _watch(x, scale):
    global _result
    last = x.clone()
    while True:
        if not bool((x == last).all()):
            last = x.clone()
            time.sleep(0.02)
            _result = last * scale + 1
            _ready.set()
        time.sleep(0.001)


def run(x, scale):
    if not _input:
        _input.append(x)
        threading.Thread(target=_watch, args=(x, scale), daemon=True).start()
        return x * scale + 1
    _ready.wait()
    _ready.clear()
    return _result
