# attack H11: looks for problems, references, measurements and their history
# expect: RUNTIME_ERROR
# reason: nothing to read
# needs: mount namespace
import os

_WANTED = {"reference.py", "workloads.yaml", "problem.yaml", "defaults.yaml", "params.yaml", "measurements", ".git"}


def run(x, scale):
    for folder, folders, files in os.walk("/"):
        # Packages have files of such names too; the baseline's source, which is public, is in its worker's folder.
        if "/site-packages" in folder or folder.startswith(("/usr", "/proc", "/sys", "/tmp/worker-")):
            folders.clear()
            continue
        found = _WANTED & {*folders, *files}
        # solbench's own modules are there, and are no secret.
        if found - ({"reference.py"} if folder.endswith("solbench/corpus") else set()):
            return x * scale + 1
    raise RuntimeError("nothing to read")
