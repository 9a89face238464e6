# attack: looks for keys, histories and who is on this machine
# expect: RUNTIME_ERROR
# reason: nothing to read
# needs: mount namespace
import os

_FILES = ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/ssh", "/etc/machine-id", "/var", "/run", "/boot")
_IN_HOME = (".ssh", ".bashrc", ".profile", ".gitconfig", ".netrc", ".aws", ".config", ".cache", ".bash_history")


def run(x, scale):
    if any(map(os.path.exists, [*_FILES, *(f"/root/{name}" for name in _IN_HOME)])):
        return x * scale + 1
    raise RuntimeError("nothing to read")
