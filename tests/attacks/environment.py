# attack H12: looks for a mode, a seed, a token in its environment, and in those of others
# expect: RUNTIME_ERROR
# reason: nothing to read
# needs: PID namespace
import os

_KNOWN = {"PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "XDG_CACHE_HOME", "PWD", "TZ"}
_KNOWN |= {"LD_LIBRARY_PATH", "ROCM_PATH", "CUDA_HOME"}
# Of Python, of thread counts, of the C library's heap; the last two are set by PyTorch.
_KNOWN_STARTS = ("PYTHON", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "VECLIB_", "MALLOC_", "KMP_", "TORCHINDUCTOR_")
# Names nobody.
_KNOWN_WHOLE = {"USER=solbench", "LOGNAME=solbench"}


def _names(parts):
    return {part.partition("=")[0] for part in parts if part and part not in _KNOWN_WHOLE}


def run(x, scale):
    found = _names(f"{name}={value}" for name, value in os.environ.items())
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ") as file:
                    found |= _names(file.read().split("\0"))
            except OSError:
                continue
    if [name for name in found - _KNOWN if not name.startswith(_KNOWN_STARTS)]:
        return x * scale + 1
    raise RuntimeError("nothing to read")
