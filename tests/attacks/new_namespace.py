# attack: wants to be root in a namespace of its own, for what the kernel lets root do
# expect: RUNTIME_ERROR
# reason: no namespace
# needs: user namespace
import ctypes

_USER, _MOUNT = 0x10000000, 0x00020000


def run(x, scale):
    libc = ctypes.CDLL(None)
    if libc.unshare(_USER) == 0 or libc.unshare(_MOUNT) == 0 or libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
        return x * scale + 1
    raise RuntimeError("no namespace")
