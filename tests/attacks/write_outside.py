# attack H5: writes where it has no business
# expect: RUNTIME_ERROR
# reason: PermissionError
# needs: landlock
import os


def run(x, scale):
    with open(os.path.join(os.path.dirname(os.__file__), "solbench-attack.pth"), "w"):
        pass
    return x * scale + 1
