"""The three stages in a row: a reference and a machine in, graph, program, attestation and bound out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import solar
from solar.einsum import Program
from solar.graph import Input, OperatorGraph
from solar.hardware import Machine

NOT_ASKED = "not asked for"


@dataclass(frozen=True)
class Analysis:
    """What became of a reference. ``attestation`` is None where ``not_attested`` says why; ``bound``:
    :func:`solar.bound.bound`."""

    graph: OperatorGraph
    program: Program
    attestation: Mapping[str, Any] | None
    not_attested: str | None
    bound: Mapping[str, Any]


def record(
    run: Callable[..., Any],
    inputs: Mapping[str, Input],
    *,
    path: str = "aten",
    outputs: Sequence[str] | None = None,
    in_place: Sequence[str] = (),
    structures: Mapping[str, str] | None = None,
) -> tuple[OperatorGraph, Program]:
    """Stages 1 and 2. ``structures``: inputs whose every draw is the same mask, by declared name."""
    graph = solar.extract_graph(run, inputs, path=path, outputs=outputs, in_place=in_place)
    program: Program = solar.convert_graph(graph)
    named = {tensor: structures[name] for name, tensor in program.inputs if structures and name in structures}
    return graph, replace(program, structures=named)


def analyze(
    run: Callable[..., Any],
    inputs: Mapping[str, Input],
    machine: Machine,
    *,
    path: str = "aten",
    outputs: Sequence[str] | None = None,
    in_place: Sequence[str] = (),
    structures: Mapping[str, str] | None = None,
    rejected_formats: Sequence[str] = (),
    attestor: Callable[[Program], Mapping[str, Any] | str] | None = None,
) -> Analysis:
    """Graph, program, attestation and bound of ``run(*inputs)`` on ``machine``.

    ``attestor``: gives a statement on the program (:func:`solar.attest.attest`), or the reason why it cannot be tried;
    where replay and reference disagree it raises, and there is no analysis. The rest as in :func:`record` and
    :func:`solar.bound.bound`. Raises a :class:`~solar.errors.SolarError` with the reason where a stage fails.
    """
    graph, program = record(run, inputs, path=path, outputs=outputs, in_place=in_place, structures=structures)
    bound: Mapping[str, Any] = solar.bound_program(program, machine, rejected_formats=rejected_formats)
    statement = NOT_ASKED if attestor is None else attestor(program)
    if isinstance(statement, str):
        return Analysis(graph, program, None, statement, bound)
    return Analysis(graph, program, statement, None, bound)
