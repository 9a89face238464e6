"""Runs one module of the breadth set: a file in KernelBench form through extraction, conversion, attestation and bound.

The modules lie in ``nn/`` (neural networks) and ``tensor/`` (tensor algebra), one a file. Each has
``class Model(nn.Module)``, ``get_inputs()`` and ``get_init_inputs()``. Its inputs are the arguments of ``forward`` by
name, then parameters and buffers by theirs. Options, as constants of the file:

``KNOWN``      integer or boolean inputs whose contents decide the work (offsets, lengths, block tables).
``IN_PLACE``   inputs that ``forward`` writes (running statistics, caches).
``UNCOUNTED``  what the bound names as not decomposed; none by default.
``POSITIVE``   floats are drawn, also zeros and boundary, as |x| + 0.5: logarithms and roots.
``AS_DRAWN``   float inputs that stay as ``get_inputs`` draws them in every kind (targets that are probabilities).
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from solar.attest import attest, patterned
from solar.bound import bound
from solar.convert import convert
from solar.einsum import Program, from_dict, to_dict
from solar.extract import extract
from solar.extract.inputs import dtype_name
from solar.graph import Input
from solar.hardware import Machine, load

SEED = 7
TARGET = "gfx1200"


@dataclass(frozen=True)
class Checked:
    """What came of a module."""

    program: Program
    bound: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A module as solar takes it: a function of named tensors and scalars."""

    run: Callable[..., Any]
    draw: Callable[[int], dict[str, Any]]
    source: ModuleType

    def option(self, name: str) -> tuple[str, ...]:
        """One of the constants that list names."""
        return tuple(getattr(self.source, name, ()))


def load_case(path: Path) -> Case:
    """The module of a file, on the CPU, its weights drawn from a fixed seed."""
    name = f"breadth_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    source = importlib.util.module_from_spec(spec)
    sys.modules[name] = source
    spec.loader.exec_module(source)
    torch.manual_seed(SEED)
    model = source.Model(*source.get_init_inputs())
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    arguments = [key for key, _ in zip(inspect.signature(model.forward).parameters, source.get_inputs(), strict=False)]

    def run(*values: Any) -> Any:
        given = values[: len(arguments)]
        held = dict(zip(state, values[len(arguments) :], strict=True))
        return torch.func.functional_call(model, held, given)

    def draw(seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        drawn = dict(zip(arguments, source.get_inputs(), strict=True))
        return drawn | {key: value.detach().clone() for key, value in state.items()}

    return Case(run, draw, source)


def declared(case: Case) -> dict[str, Input]:
    """What extraction is told: shapes and dtypes, and contents of those inputs that decide the work."""
    found = {}
    for name, value in case.draw(SEED).items():
        if isinstance(value, torch.Tensor):
            known = tuple(value.flatten().tolist()) if name in case.option("KNOWN") else None
            found[name] = Input(tuple(value.shape), dtype_name(value.dtype), values=known)
        else:
            kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
            found[name] = Input(None, kind, value=value)
    return found


def converted(case: Case, path: str = "aten") -> Program:
    """The program of a module, after a round trip through plain JSON."""
    graph = extract(case.run, declared(case), path=path, in_place=case.option("IN_PLACE"))
    written = json.dumps(to_dict(convert(graph)), sort_keys=True, allow_nan=False)
    return from_dict(json.loads(written))


def attested(case: Case, program: Program, seeds: Sequence[int] = (1, 2)) -> None:
    """Raise unless the program computes what the module computes."""
    kept = {*case.option("AS_DRAWN"), *case.option("KNOWN")}
    known = {name: value for name, value in case.draw(SEED).items() if name in case.option("KNOWN")}

    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        drawn = case.draw(seed)
        chosen = {**patterned(drawn, kind), **{name: drawn[name] for name in kept}, **known}
        if getattr(case.source, "POSITIVE", False):
            for name, value in chosen.items():
                if isinstance(value, torch.Tensor) and value.dtype.is_floating_point and name not in kept:
                    chosen[name] = value.abs() + 0.5
        return chosen

    statement = attest(
        program, case.run, inputs_for, subject={"module": "none:0"}, digest=lambda value: "none:0", seeds=seeds
    )
    assert statement["predicate"]["verdict"] == "passed"


def check(path: Path, machine: Machine | None = None) -> Checked:
    """Extract, convert, attest at real size, bound: complete, or uncounted as the module says."""
    case = load_case(path)
    program = converted(case)
    attested(case, program)
    result = bound(program, machine or load(TARGET))
    assert tuple(result["uncounted"]) == case.option("UNCOUNTED")
    assert result["coverage"] == ("partial" if result["uncounted"] else "complete")
    assert result["t_sol_s"] > 0
    return Checked(program, result)
