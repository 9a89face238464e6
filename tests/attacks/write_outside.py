# attack H5: writes where it has no business
# expect: RUNTIME_ERROR
# reason: nothing was written
# needs: landlock
import os


def run(x, scale):
    try:
        with open(os.path.join(os.path.dirname(os.__file__), "solbench-attack.pth"), "w"):
            return x * scale + 1
    except OSError:
        raise RuntimeError("nothing was written") from None
