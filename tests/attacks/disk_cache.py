# attack C6: leaves results wherever it can write, and looks for those of an earlier run
# expect: PASSED
# again: the second run must not find what the first one left
# needs: landlock
import os
import tempfile

_PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue", os.getcwd(), tempfile.gettempdir(), os.path.expanduser("~"))
_files = [os.path.join(place, "solbench-attack-cache") for place in _PLACES]
_found = [path for path in _files if os.path.exists(path)]


def run(x, scale):
    if _found:
        raise RuntimeError(f"found {_found}")
    for path in _files:
        try:
            with open(path, "ab") as file:
                file.write((x * scale + 1).numpy().tobytes())
        except OSError:
            continue
    return x * scale + 1
