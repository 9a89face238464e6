# honest: half of the work on a second stream, joined before it returns
import torch

_side = torch.cuda.Stream()


def run(x, scale):
    y = torch.empty_like(x)
    half = len(x) // 2
    _side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_side):
        torch.mul(x[half:], scale, out=y[half:]).add_(1)
    torch.mul(x[:half], scale, out=y[:half]).add_(1)
    torch.cuda.current_stream().wait_stream(_side)
    return y
