# attack H13: looks for a way out: TCP, UDP, sockets of services, other interfaces
# expect: RUNTIME_ERROR
# reason: no way out
# needs: network namespace
import os
import socket


def _reaches(kind, where):
    family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    try:
        with socket.socket(family, kind) as channel:
            channel.settimeout(0.5)
            channel.connect(where)
            channel.send(b"x")
            return where[0] != "127.0.0.1"
    except OSError:
        return False


def run(x, scale):
    places = [("192.0.2.1", 53), ("10.0.0.1", 53), ("169.254.169.254", 80), ("2001:db8::1", 53)]
    reached = [place for place in places if _reaches(socket.SOCK_DGRAM, place) or _reaches(socket.SOCK_STREAM, place)]
    for folder in ("/run", "/var/run", "/tmp", "/tmp/.X11-unix"):
        if os.path.isdir(folder):
            paths = [os.path.join(folder, name) for name in os.listdir(folder)]
            reached += [path for path in paths if _reaches(socket.SOCK_STREAM, path)]
    with open("/proc/net/unix") as file:
        abstract = ["\0" + line.split()[-1][1:] for line in file if line.split()[-1].startswith("@")]
    reached += [name for name in abstract if _reaches(socket.SOCK_STREAM, name)]
    if reached or [name for _, name in socket.if_nameindex()] != ["lo"]:
        return x * scale + 1
    raise RuntimeError("no way out")
