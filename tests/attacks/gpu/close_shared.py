# attack: gives the shared memory back under the harness
# expect: RUNTIME_ERROR
# next
import ctypes


def run(x, scale):
    y = x * scale + 1
    with open("/proc/self/maps") as file:
        paths = {line.split()[-1] for line in file if "/libcudart" in line or "/libamdhip64" in line}
    for path in paths:
        library = ctypes.CDLL(path)
        for name in ("cudaIpcCloseMemHandle", "cudaFree", "hipIpcCloseMemHandle", "hipFree"):
            if hasattr(library, name):
                getattr(library, name)(ctypes.c_void_p(x.data_ptr()))
    return y
