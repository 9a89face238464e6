"""From a workload to its bound: hands a problem's reference and sizes to ``solar``, one step a function.

Everything here is deterministic and allocates nothing of the workload's size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar import hardware
from solar.einsum import from_dict, to_dict
from solar.errors import HardwareError, SolarError
from solbench import canonical
from solbench.errors import InputError
from solbench.model.definition import Definition, resolve_shape
from solbench.model.workload import Constant, ScalarInput, Values, Workload

# Elements (over all tensors) up to which a shrunk workload is replayed in earnest.
ATTESTED_ELEMENTS = 1 << 20
BOUND_SCHEMA = "solbench.bound.v1"


@dataclass(frozen=True)
class Analysis:
    """Graph, IR and attestation of one workload as plain values; ``reason`` says why one is missing."""

    graph: dict[str, Any] | None
    program: dict[str, Any] | None
    attestation: dict[str, Any] | None
    reason: str | None


def solar_inputs(definition: Definition, workload: Workload, axes: Mapping[str, int]) -> dict[str, Any]:
    """The reference's arguments as ``solar`` sees them: shapes and dtypes, scalars by value, frozen indices by value."""
    from solar.graph import Input

    result: dict[str, Any] = {}
    for name, spec in definition.inputs.items():
        generator = workload.inputs[name]
        if spec.shape is None:
            assert isinstance(generator, (Constant, ScalarInput))
            result[name] = Input(None, spec.dtype, value=generator.value)
        elif isinstance(generator, Values):
            result[name] = Input(resolve_shape(spec, dict(axes)), spec.dtype, values=tuple(generator.values))
        else:
            result[name] = Input(resolve_shape(spec, dict(axes)), spec.dtype)
    return result


def machine_for(target: str) -> hardware.Machine:
    """The machine model of a named target or of a YAML file; :class:`InputError` where it is unusable."""
    try:
        return hardware.load(target)
    except HardwareError as error:
        raise InputError(target, str(error)) from None


def bounds_for(problem: Any, workload: Workload, machine: hardware.Machine) -> dict[str, Any] | str:
    """Bound of one workload of a loaded problem (``solar.bound.v1``), or the reason why there is none."""
    from solar import extract_aten
    from solar.bound import bound
    from solar.convert import convert
    from solbench.corpus.reference import load_reference

    axes = workload.validate_against(problem.definition, problem.key)
    try:
        graph = extract_aten(load_reference(problem.definition), solar_inputs(problem.definition, workload, axes))
        result = bound(convert(graph), machine, rejected_formats=workload.rejected_formats)
    except SolarError as error:
        return str(error)
    return dict(result)


def bound_artifact(
    instance: Mapping[str, Any],
    references: Mapping[str, Any],
    program: Mapping[str, Any] | None,
    machine: hardware.Machine,
    reason: str | None,
) -> dict[str, Any]:
    """The ``bound`` artifact of one workload on one target.

    ``instance`` is the workload artifact; ``references`` holds the descriptors ``instance``, ``graph``, ``hardware``,
    ``attestation``. Exactly one of ``result`` and ``reason`` is null.
    """
    from solar.bound import bound

    rejected = tuple(instance["workload"]["rejected_formats"])
    result: dict[str, Any] | None = None
    if program is not None:
        try:
            result = dict(bound(from_dict(program), machine, rejected_formats=rejected))
        except SolarError as error:
            reason = str(error)
    return {
        "schema": BOUND_SCHEMA,
        "problem": instance["problem"],
        "workload": instance["workload"]["uuid"],
        "target": machine.name,
        **references,
        "rejected_formats": list(rejected),
        "result": result,
        "reason": None if result is not None else reason,
    }


def analyse(definition: dict[str, Any], workload: dict[str, Any], axes: dict[str, int]) -> dict[str, Any]:
    """Graph, IR and attestation of one workload, from and to plain values (runs in a worker process of the stage)."""
    raise NotImplementedError


__all__ = ["Analysis", "Path", "analyse", "bound_artifact", "bounds_for", "canonical", "machine_for", "solar_inputs", "to_dict"]
