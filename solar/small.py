"""Attestation of a file (:mod:`solar.module`): at its own sizes where they are small, else at smaller ones.

Smaller means: the whole numbers that the file assigns to names at its top level are halved, the largest first, as long
as the file still loads, until a replay is cheap; what is attested then has to be the same operations on the same wiring
(:func:`solar.attest.same_structure`). Nothing of the workload's own size is ever run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from solar.attest import attest, patterned, same_structure
from solar.einsum import Program
from solar.errors import ModuleError, SolarError
from solar.extract.inputs import torch_dtype
from solar.module import Module, constants, load
from solar.seeding import Devices

# What a replay may cost: elements of all inputs and outputs, of one intermediate, and multiply-adds.
DECLARED_ELEMENTS = 1 << 17
ELEMENTS = 1 << 22
MULTIPLY_ADDS = 1 << 28
# Sizes below are kept: numbers of heads, groups, kernel extents, which decide what is computed.
_SMALLEST = 16

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
    if not _cheap(program):
        found = _smaller(path, program, record)
        if isinstance(found, str):
            return found
        sizes, replayed = found
    known = load(path, sizes=sizes).inputs
    drawn: dict[int, dict[str, Any]] = {}

    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        if seed not in drawn:
            drawn.clear()
            drawn[seed] = _real(load(path, seed=seed, real=True, sizes=sizes), known)
        return patterned(drawn[seed], kind)

    run = load(path, real=True, sizes=sizes).run
    return attest(
        replayed, run, inputs_for, subject=subject, digest=digest, analysed=None if replayed is program else program
    )


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


def _cheap(program: Program) -> bool:
    """Whether a replay runs in well under a second."""
    declared = sum(program.tensors[name].elements for _, name in (*program.inputs, *program.outputs))
    largest = max((tensor.elements for tensor in program.tensors.values()), default=0)
    work = sum(math.prod(op.attributes["indices"].values()) for op in program.ops if op.kind == "einsum")
    return declared <= DECLARED_ELEMENTS and largest <= ELEMENTS and work <= MULTIPLY_ADDS


def _smaller(path: Path, program: Program, record: Callable[[Module], Program]) -> tuple[Sizes, Program] | str:
    """Sizes, and the same program at these; or why there are none."""
    whole = {name: size for name, size in constants(path).items() if size >= _SMALLEST}
    if not whole:
        return "too large to run here, and the file assigns no sizes to names at its top level to make smaller"
    reason = "no smaller sizes were found at which it is cheap to run"

    @cache
    def loaded(sizes: tuple[tuple[str, int], ...]) -> Module | None:
        try:
            return load(path, sizes=dict(sizes))
        except ModuleError:
            return None

    @cache
    def at(sizes: tuple[tuple[str, int], ...]) -> Program | None:
        nonlocal reason
        module = loaded(sizes)
        if module is None:
            return None
        try:
            small = record(module)
            same_structure(program, small)
        except SolarError as error:
            changed = ", ".join(f"{name} {whole[name]} -> {size}" for name, size in sizes if size != whole[name])
            reason = f"at smaller sizes ({changed}) it is not the same program: {error}"
            return None
        return small

    # Loading alone is quick; a whole analysis at every step is for files whose sizes depend on each other.
    for accepted in (loaded, at):
        sizes, free = dict(whole), set(whole)
        while True:
            key = tuple(sizes.items())
            module = loaded(key)
            small = at(key) if module is not None and _elements(module) <= DECLARED_ELEMENTS else None
            if small is not None and _cheap(small):
                return sizes, small
            halves = {name: half for name in free if (half := _half(sizes[name])) is not None}
            if not halves:
                break
            name = max(halves, key=lambda name: (sizes[name], name))
            trial = {**sizes, name: halves[name]}
            if accepted(tuple(trial.items())) is not None:
                sizes = trial
            else:
                free.discard(name)
    return f"too large to run here, and {reason}"


def _elements(module: Module) -> int:
    return sum(math.prod(given.shape) for given in module.inputs.values() if given.shape is not None)


def _half(size: int) -> int | None:
    """Half of a size, of the same parity, and a multiple of 32 where it is one."""
    half = size // 2
    if size < _SMALLEST or (size % 32 == 0 and half % 32):
        return None
    return half | 1 if size % 2 else half & ~1
