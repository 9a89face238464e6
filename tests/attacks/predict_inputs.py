# attack C15: draws the inputs itself, from seeds that somebody might use, and answers for those
# expect: INCORRECT_NUMERICAL
import torch

_guesses = []
for _seed in range(100):
    torch.manual_seed(_seed)
    _guesses.append(torch.randn(1000) * 2.5 + 1)


def run(x, scale):
    return _guesses.pop()
