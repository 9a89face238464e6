# attack H7: makes every comparison true and every random number known
# expect: INCORRECT_NUMERICAL
import torch

torch.allclose = torch.equal = lambda *_, **__: True
torch.Tensor.allclose = torch.Tensor.equal = lambda *_, **__: True
torch.isclose = torch.Tensor.isclose = lambda a, *_, **__: torch.ones_like(a, dtype=torch.bool)
torch.testing.assert_close = lambda *_, **__: None
torch.rand = torch.randn = lambda *shape, **_: torch.zeros(shape)


def run(x, scale):
    return torch.zeros_like(x)
