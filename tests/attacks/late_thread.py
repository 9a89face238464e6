# attack T9: returns at once and lets a thread do the work
# expect: INCORRECT_NUMERICAL
import threading
import time

import torch


def run(x, scale):
    result = torch.empty_like(x)

    def work():
        time.sleep(0.05)
        torch.mul(x, scale, out=result)
        result.add_(1)

    threading.Thread(target=work).start()
    return result
