"""Attestation of a file (:mod:`solar.module`): at its own sizes where they are small, else at smaller ones.

Smaller means: the whole numbers that the file assigns to names at its top level are halved, at first all together, then
the largest, until a replay is cheap; at each step the file has to mean the same operations on the same wiring
(:func:`solar.attest.same_structure`). Nothing of the workload's own size is ever run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from solar.attest import KINDS, SEEDS, attest, patterned, same_structure
from solar.einsum import Program
from solar.errors import ModuleError, SolarError
from solar.extract.inputs import FOREIGN, torch_dtype
from solar.module import Module, constants, load

# What a replay may cost: elements of all inputs and outputs, of one intermediate, and multiply-adds.
DECLARED_ELEMENTS = 1 << 17
ELEMENTS = 1 << 19
MULTIPLY_ADDS = 1 << 26
# Sizes below are kept: numbers of heads, groups, kernel extents, which decide what is computed. Those that are halved
# together stop sooner, at a width that blocks and heads still divide.
_SMALLEST, _KEPT = 16, 32

Sizes = dict[str, int]


def attest_module(
    path: Path,
    program: Program,
    record: Callable[[Module], Program],
    *,
    subject: Mapping[str, str],
    digest: Callable[[dict[str, Any]], str],
) -> dict[str, Any] | str:
    """Statement that ``program`` computes the module of ``path``, or the reason why it could not be tried.

    ``record``: extraction and conversion, as they gave ``program``. ``subject``, ``digest``: see
    :func:`solar.attest.attest`. Raises :class:`~solar.errors.ReplayError` where the two disagree.
    """
    sizes: Sizes = {}
    replayed = program
    if not cheap(program):
        found = _smaller(path, program, record)
        if isinstance(found, str):
            return found
        sizes, replayed = found
    module = load(path, sizes=sizes)
    drawn: dict[int, dict[str, Any]] = {}

    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        if seed not in drawn:
            drawn.clear()
            drawn[seed] = _real(load(path, seed=seed, real=True, sizes=sizes), module.inputs)
        return {**patterned(drawn[seed], kind), **patterned({n: drawn[seed][n] for n in module.as_drawn}, "random")}

    run = load(path, real=True, sizes=sizes).run
    return attest(
        replayed,
        run,
        inputs_for,
        subject=subject,
        digest=digest,
        analysed=None if replayed is program else program,
        kinds=[kind for kind in KINDS if kind == "random" or _accepts(run, inputs_for(SEEDS[0], kind))],
    )


def _accepts(run: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    """Whether a module takes such inputs at all: some refuse what lies outside their domain (a negative variance)."""
    try:
        run(*inputs.values())
    except FOREIGN:
        return False
    return True


def _real(module: Module, known: Mapping[str, Any]) -> dict[str, Any]:
    """Floats as a seed draws them; discrete inputs as the program knows them."""
    result: dict[str, Any] = {}
    for name, value in module.held.items():
        given = known[name]
        if not isinstance(value, torch.Tensor):
            result[name] = value
        elif given.values is not None:
            result[name] = torch.tensor(given.values, dtype=torch_dtype(name, given.dtype)).reshape(given.shape)
        else:
            result[name] = value.detach().contiguous()
    return result


def cheap(program: Program, declared_elements: int = DECLARED_ELEMENTS) -> bool:
    """Whether a replay takes about a second at most."""
    declared = sum(program.tensors[name].elements for _, name in (*program.inputs, *program.outputs))
    largest = max((tensor.elements for tensor in program.tensors.values()), default=0)
    work = sum(math.prod(op.attributes["indices"].values()) for op in program.ops if op.kind == "einsum")
    return declared <= declared_elements and largest <= ELEMENTS and work <= MULTIPLY_ADDS


def _smaller(path: Path, program: Program, record: Callable[[Module], Program]) -> tuple[Sizes, Program] | str:
    """Sizes, and the same program at these; or why there are none."""
    whole = {name: size for name, size in constants(path).items() if size >= _SMALLEST}
    if not whole:
        return "too large to run here, and the file assigns no sizes to names at its top level to make smaller"
    reason = "halving the sizes that the file assigns to names at its top level does not make it small enough"

    def at(sizes: Sizes) -> Program | None:
        """The same program at other sizes; None where the file then does not load, or means something else."""
        nonlocal reason
        try:
            small = record(load(path, sizes=sizes))
            same_structure(program, small)
        except ModuleError:
            return None
        except SolarError as error:
            changed = ", ".join(
                f"{name} {whole[name]} -> {size}" for name, size in sizes.items() if size != whole[name]
            )
            reason = f"at smaller sizes ({changed}) it is not the same program: {error}"
            return None
        return small

    # All together, so that what is larger than something else stays so; then one by one, the largest first.
    sizes, small, together, free = dict(whole), program, True, set(whole)
    while not cheap(small):
        if together:
            trial = {name: half if (half := _half(size)) >= _KEPT else size for name, size in sizes.items()}
        else:
            name = max(free, key=lambda name: (sizes[name], name), default="")
            trial = {**sizes, name: _half(sizes[name])} if free and sizes[name] >= _SMALLEST else sizes
        found = at(trial) if trial != sizes else None
        if found is not None:
            sizes, small = trial, found
        elif together:
            together = False
        elif trial != sizes:
            free.discard(name)
        else:
            return f"too large to run here, and {reason}"
    return sizes, small


def _half(size: int) -> int:
    """Half of a size, of the same parity."""
    return size // 2 | 1 if size % 2 else size // 2 & ~1
