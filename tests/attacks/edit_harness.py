# attack H5: appends to the harness and to what Python has compiled of it
# expect: RUNTIME_ERROR
# reason: nothing was written
# needs: landlock
import glob
import os
import sys


def run(x, scale):
    package = os.path.dirname(sys.modules["solbench"].__file__)
    files = glob.glob(f"{package}/**/*.py*", recursive=True)
    for path in [*files, f"{package}/new.py", f"{os.path.dirname(package)}/sitecustomize.py"]:
        try:
            with open(path, "a"):
                return x * scale + 1
        except OSError:
            continue
    raise RuntimeError(f"nothing was written, of {len(files) > 10} files")
