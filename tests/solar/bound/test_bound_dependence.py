"""Every element that the bound charges for does change an output: gradients of the program itself say so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bound_programs import STEPS, Build, programs
from hypothesis import given, settings

from solar.bound import bound
from solar.einsum import Tensor
from solar.hardware import load

torch = pytest.importorskip("torch")
GFX1200 = load("gfx1200")


# Without those that cancel exactly (the sum of a centred row) or saturate.
SMOOTH = tuple(step for step in STEPS if step not in ("centre", "softmax"))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(programs(SMOOTH))
def test_what_is_read_matters(made: tuple[Build, str]) -> None:
    from solar.replay import run_op

    b, value = made
    program = b.program(value)
    generator = torch.Generator().manual_seed(1)
    inputs = {
        name: (torch.rand(program.tensors[name].shape, generator=generator) * 0.2 + 0.1).double().requires_grad_()
        for name, _ in program.inputs
    }
    tensors = {name: Tensor(tensor.shape, "float64") for name, tensor in program.tensors.items()}
    doubled = replace(program, tensors=tensors)
    values = dict(inputs)
    for op in program.ops:
        values.update(zip(op.outputs, run_op(doubled, op, [values[name] for name in op.operands]), strict=True))
    out = values[value]
    weights = torch.rand(out.shape, generator=generator).double()
    total = (out * weights).sum()
    gradients = torch.autograd.grad(total, list(inputs.values()), allow_unused=True)
    found = {t["name"]: t["live_bytes"] for t in bound(program, GFX1200)["tensors"] if t["role"] == "input"}
    for name, gradient in zip(inputs, gradients, strict=True):
        touched = 0 if gradient is None else int((gradient != 0).sum())
        assert found[name] <= 4 * touched
