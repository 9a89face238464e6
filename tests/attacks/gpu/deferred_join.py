# attack T8: works on a stream of its own, and waits for it when it is called again
# expect: INCORRECT_NUMERICAL or REWARD_HACK or PASSED
# at least: 0.006
import torch

_side = torch.cuda.Stream()


def run(x, scale):
    torch.cuda.current_stream().wait_stream(_side)
    y = torch.empty_like(x)
    with torch.cuda.stream(_side):
        torch.cuda._sleep(20_000_000)
        torch.mul(x, scale, out=y).add_(1)
    return y
