"""Random numbers: with a declared seed they are part of the program, without one the reference is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from solar.attest import attest, patterned
from solar.bound import bound
from solar.convert import convert
from solar.einsum import Op, Program
from solar.errors import ExtractionError, ReplayError
from solar.extract.aten import extract
from solar.graph import Input
from solar.hardware import load

SHAPE = (4, 12)


def program_of(run: Callable[..., object]) -> Program:
    return convert(extract(run, {"x": Input(SHAPE, "float32")}))


def attested(program: Program, run: Callable[..., object]) -> None:
    def inputs_for(seed: int, kind: str) -> dict[str, torch.Tensor]:
        return patterned({"x": torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))}, kind)

    attest(program, run, inputs_for, subject={"reference": "none:0"}, digest=lambda value: "none:0", seeds=(1,))


def draws(program: Program) -> list[Op]:
    return [op for op in program.ops if op.function == "random"]


def seeded(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(3)
    return x + torch.rand_like(x) * F.dropout(x, 0.5)


def test_a_seed_in_the_reference() -> None:
    program = program_of(seeded)
    assert [(op.attributes["distribution"], op.attributes["seed"]) for op in draws(program)] == [
        ("uniform", 3),
        ("bernoulli", 3),
    ]
    attested(program, seeded)


def test_another_seed_is_noticed() -> None:
    program = program_of(seeded)
    ops = tuple(
        replace(op, attributes={**op.attributes, "seed": 4}) if op.function == "random" else op for op in program.ops
    )
    with pytest.raises(ReplayError, match="beyond the tolerance"):
        attested(replace(program, ops=ops), seeded)


def test_a_new_seed_starts_a_new_stream() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(5)
        first = torch.randn(SHAPE, generator=generator)
        second = torch.randn(SHAPE, generator=generator)
        generator.manual_seed(5)
        return x + first - torch.randn(SHAPE, generator=generator) + second

    program = program_of(run)
    assert [op.attributes["stream"] for op in draws(program)] == [0, 0, 1]
    attested(program, run)


def test_draws_that_nothing_reads_move_the_stream() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        torch.rand(7)
        return x + torch.rand(SHAPE)

    attested(program_of(run), run)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x + torch.rand_like(x),
        lambda x: F.dropout(x, 0.5),
        lambda x: x + torch.empty_like(x).normal_(),
        lambda x: x[torch.randperm(4)],
    ],
    ids=["rand", "dropout", "normal", "randperm"],
)
def test_without_a_seed(run: Callable[..., object]) -> None:
    # Whatever the caller seeded is none of the reference's business.
    torch.manual_seed(3)
    with pytest.raises(ExtractionError, match="draws random numbers without a seed") as error:
        program_of(run)
    assert "\n" not in str(error.value)


def test_a_generator_that_comes_from_outside_and_has_moved() -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(1, generator=generator)
    with pytest.raises(ExtractionError, match="without a seed"):
        program_of(lambda x: x + torch.rand(SHAPE, generator=generator))


def test_a_distribution_without_a_rule() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return torch.multinomial(x.abs(), 2)

    with pytest.raises(ExtractionError, match=r"aten\.multinomial: draws random numbers of a kind that has no rule"):
        program_of(run)


def test_the_callers_generator_is_put_back() -> None:
    torch.manual_seed(17)
    before = torch.default_generator.get_state()
    program_of(seeded)
    assert torch.equal(torch.default_generator.get_state(), before)


def test_a_draw_costs_an_operation_an_element_and_no_bytes() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(SHAPE, generator=torch.Generator().manual_seed(1))

    found = bound(program_of(run), load("gfx1200"))
    assert {term["function"]: term["work"] for term in found["terms"]} == {"random": 48, "add": 48}
    assert found["memory"]["live_bytes"] == 2 * 4 * 48
