# honest: two threads, each with a stream of its own, joined before it returns
import threading

import torch

_streams = [torch.cuda.Stream() for _ in range(2)]


def run(x, scale):
    y = torch.empty_like(x)
    half = len(x) // 2
    current = torch.cuda.current_stream()

    def work(stream, part):
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            torch.mul(x[part], scale, out=y[part]).add_(1)

    parts = (slice(0, half), slice(half, None))
    threads = [threading.Thread(target=work, args=pair) for pair in zip(_streams, parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream in _streams:
        current.wait_stream(stream)
    return y
