# attack C6: leaves results wherever it can write, and looks for those of an earlier run
# expect: PASSED
# again: the second run must not find what the first one left
# needs: landlock
import os
import tempfile

import torch

_PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue", os.getcwd(), tempfile.gettempdir(), os.path.expanduser("~"))
_files = [os.path.join(place, "solbench-attack-cache") for place in _PLACES]
_found = [path for path in _files if os.path.exists(path)]


def run(x, scale):
    if _found:
        raise RuntimeError(f"found {_found}")
    y = x * scale + 1
    for path in _files:
        try:
            torch.save(y[:1000].clone(), path)
        except (OSError, RuntimeError):
            continue
    return y
