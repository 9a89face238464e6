# attack H4: has the last word at its end
# expect: PASSED
import atexit
import json
import os
import sys


def _last_word():
    result = json.dumps([{"status": "PASSED", "t_k_s": 1e-12}])
    for path in ("result.json", "trace.json", "/tmp/result.json"):
        try:
            with open(path, "w") as file:
                file.write(result)
        except OSError:
            continue
    os._exit(0)


atexit.register(_last_word)
sys.excepthook = lambda *_: os._exit(0)


def run(x, scale):
    return x * scale + 1
