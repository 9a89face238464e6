# honest: threads of its own, joined before it returns
import threading

import torch


def run(x, scale):
    result = torch.empty_like(x)
    half = len(x) // 2

    def work(part):
        torch.mul(x[part], scale, out=result[part])
        result[part].add_(1)

    threads = [threading.Thread(target=work, args=(part,)) for part in (slice(0, half), slice(half, None))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return result
