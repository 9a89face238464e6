# attack C12: looks for the expected output in its own process and in those of the harness
# expect: INCORRECT_NUMERICAL
# log: read nothing of
import gc
import os

import torch


def _memories():
    """Memory of every process that it may open but its own."""
    opened = 0
    seen = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            seen += 1
            try:
                with open(f"/proc/{name}/mem", "rb", 0) as file, open(f"/proc/{name}/maps") as maps:
                    start = int(maps.readline().partition("-")[0], 16)
                    file.seek(start)
                    opened += bool(file.read(16))
            except OSError:
                continue
    print(f"read {opened or 'nothing'} of {seen > 0}")


def run(x, scale):
    _memories()
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == x.shape and thing is not x:
            return thing.clone()
    return x.clone()
