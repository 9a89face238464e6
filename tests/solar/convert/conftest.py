"""One check for all families: a reference is extracted, converted, validated, written and read, and attested."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from solar.attest import attest, patterned
from solar.convert import convert
from solar.einsum import Program, from_dict, to_dict
from solar.extract.aten import dtype_name, extract
from solar.graph import Input
from solar.graph import from_dict as graph_from_dict
from solar.graph import to_dict as graph_to_dict


def declared(inputs: dict[str, Any], known: Sequence[str] = ()) -> dict[str, Input]:
    """What extraction is told of example inputs."""
    result = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            values = tuple(value.flatten().tolist()) if name in known else None
            result[name] = Input(tuple(value.shape), dtype_name(value.dtype), values=values)
        else:
            kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
            result[name] = Input(None, kind, value=value)
    return result


def drawn(inputs: dict[str, Any], seed: int) -> dict[str, Any]:
    """Floats anew from the seed, everything else as in the example."""
    result = {}
    for position, (name, value) in enumerate(inputs.items()):
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            generator = torch.Generator().manual_seed(1000 * seed + position)
            result[name] = torch.randn(value.shape, generator=generator).to(value.dtype)
        else:
            result[name] = value.clone() if isinstance(value, torch.Tensor) else value
    return result


@pytest.fixture
def witness() -> Callable[..., Program]:
    """``witness(run, {name: example}, known=..., in_place=...)`` gives the attested program."""

    def check(
        run: Callable[..., Any],
        inputs: dict[str, Any],
        *,
        known: Sequence[str] = (),
        in_place: Sequence[str] = (),
        outputs: Sequence[str] | None = None,
        positive: bool = False,
    ) -> Program:
        graph = extract(run, declared(inputs, known), in_place=in_place, outputs=outputs)
        # The store keeps both as canonical JSON, keys sorted: conversion must not depend on an order of keys.
        stored = graph_from_dict(json.loads(json.dumps(graph_to_dict(graph), sort_keys=True, allow_nan=False)))
        program = convert(stored)
        written = json.dumps(to_dict(program), sort_keys=True, allow_nan=False)
        assert json.dumps(to_dict(convert(graph)), sort_keys=True) == written
        reread = from_dict(json.loads(written))

        def inputs_for(seed: int, kind: str) -> dict[str, Any]:
            chosen = patterned(drawn(inputs, seed), kind)
            if positive:
                floats = {n: v for n, v in chosen.items() if isinstance(v, torch.Tensor) and v.dtype.is_floating_point}
                chosen |= {name: value.abs() + 0.5 for name, value in floats.items()}
            return chosen

        statement = attest(
            reread, run, inputs_for, subject={"reference": "none:0"}, digest=lambda value: "none:0", seeds=(1,)
        )
        assert statement["predicate"]["verdict"] == "passed"
        return program

    return check
