"""From a workload to its bound: hands a problem's reference and sizes to ``solar``, one step a function.

Everything here is deterministic and allocates nothing of the workload's size.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar.einsum import Program, from_dict
from solar.errors import HardwareError, ReplayError, SolarError
from solbench import canonical, store
from solbench.corpus.reduce import KEPT, Instance, elements, witness
from solbench.errors import InputError
from solbench.model.definition import AxisExpr, Definition, resolve_shape
from solbench.model.workload import Constant, LowerTriangular, ScalarInput, Values, Workload

if TYPE_CHECKING:
    from solar.graph import OperatorGraph
    from solar.hardware import Machine
    from solbench.corpus.load import Problem

# Elements of all inputs and outputs up to which a workload is replayed at its own sizes.
REPLAYED_ELEMENTS = 1 << 17
# The same for a witness: it has no smaller one.
WITNESS_ELEMENTS = 1 << 19
BOUND_SCHEMA = "solbench.bound.v1"


def solar_inputs(definition: Definition, workload: Workload, axes: Mapping[str, int]) -> dict[str, Any]:
    """The reference's arguments as ``solar`` sees them: shapes and dtypes; scalars and frozen indices by value."""
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


def machine_for(target: str) -> Machine:
    """The machine model of a named target or of a YAML file; :class:`InputError` where it is unusable."""
    from solar import hardware

    try:
        return hardware.load(target)
    except HardwareError as error:
        raise InputError(target, str(error).removeprefix(f"{target}: ")) from None


def machine_here(target: str) -> Machine:
    """Like :func:`machine_for`; ``cpu`` is this processor, probed at first use (``.solbench/hardware``)."""
    if target != "cpu":
        try:
            return machine_for(target)
        except InputError as error:
            raise InputError(target, error.rule.replace(", or give a file", ", cpu, or give a file")) from None
    from solar.hardware import Machine
    from solbench.device.calibrate import remembered_cpu

    return Machine.from_dict(remembered_cpu(Path(".solbench") / "hardware"))


def record_graph(instance: Mapping[str, Any], definition: Mapping[str, Any]) -> dict[str, Any]:
    """Operator graph of one workload artifact: ``graph`` (``solar.operator-graph.v1``) or ``reason``; one is null.

    ``definition`` carries the extraction ``path`` beside its own fields.
    """
    from solar.graph import to_dict

    fields = _body(definition)
    path = fields.pop("path")
    loaded = Definition.load(fields, instance["problem"])
    workload = Workload.load(instance["workload"], instance["problem"])
    try:
        return {"graph": to_dict(_extracted(loaded, workload, instance["axes"], path)), "reason": None}
    except SolarError as error:
        return {"graph": None, "reason": str(error)}


def convert_and_attest(instance: Mapping[str, Any], definition: Mapping[str, Any]) -> dict[str, Any]:
    """IR and attestation of one workload: ``program`` and ``attestation``, or ``reason`` and both null.

    ``definition`` carries the recorded ``graph`` beside its own fields.
    """
    converted = convert_and_reduce(instance, definition)
    if converted["witness"] is None:
        return {"program": None, "attestation": None, "reason": converted["reason"]}
    return attestation(converted, _examined_once(json.dumps(converted["witness"])))


def convert_and_reduce(instance: Mapping[str, Any], definition: Mapping[str, Any]) -> dict[str, Any]:
    """IR of one workload, and what is replayed for it: ``program``, ``witness`` (for :func:`examined`; many workloads
    have the same), ``reduced`` (axis: its own size and the small one), ``subject``; or ``reason`` and all of them null.

    ``definition`` carries the recorded ``graph`` beside its own fields.
    """
    from solar import convert, einsum, graph

    fields = _body(definition)
    recorded = fields.pop("graph")
    loaded = Definition.load(fields, instance["problem"])
    workload = Workload.load(instance["workload"], instance["problem"])
    try:
        program = _structured(convert.convert(graph.from_dict(recorded)), workload)
        small = _small(program, loaded, workload)
    except SolarError as error:
        return {"program": None, "witness": None, "reduced": None, "subject": None, "reason": str(error)}
    return {"program": einsum.to_dict(program), **_replayed(small, program, loaded, workload), "reason": None}


def examined(small: Mapping[str, Any]) -> dict[str, Any]:
    """Replay of a witness beside its reference: ``program`` (its IR) and ``found`` (:func:`solar.attest.examine`), or
    ``reason`` and both null."""
    from solar import attest, einsum
    from solbench.corpus.reference import load_reference

    definition = Definition.load(small["definition"], small["definition"]["name"])
    workload = Workload.load(small["workload"], definition.name)
    drawn = Instance(definition, workload, workload.validate_against(definition, definition.name))
    try:
        program = _program_of(json.dumps(small))
        found = attest.examine(program, load_reference(definition), _seeded_inputs(drawn))
    except SolarError as error:
        return {"program": None, "found": None, "reason": str(error)}
    return {"program": einsum.to_dict(program), "found": found, "reason": None}


def attestation(converted: Mapping[str, Any], replayed: Mapping[str, Any]) -> dict[str, Any]:
    """As :func:`convert_and_attest`: ``converted`` of :func:`convert_and_reduce`, ``replayed`` of :func:`examined`."""
    from solar import attest

    if replayed["found"] is None:
        return {"program": None, "attestation": None, "reason": replayed["reason"]}
    statement = attest.statement(
        from_dict(replayed["program"]),
        replayed["found"],
        subject={"definition": converted["subject"]},
        digest=lambda value: canonical.digest(store.encode("einsum-graph", value)),
        analysed=from_dict(converted["program"]) if converted["reduced"] else None,
        reduced=converted["reduced"],
    )
    return {"program": converted["program"], "attestation": statement, "reason": None}


def attested(program: Program, definition: Definition, workload: Workload) -> dict[str, Any]:
    """Statement that ``program`` computes the reference; :class:`~solar.errors.ReplayError` where it does not.

    The replay runs at small sizes, where the reference is extracted and converted again and has to give the same
    operations on the same wiring.
    """
    from solar import einsum

    replayed = _replayed(_small(program, definition, workload), program, definition, workload)
    converted = {"program": einsum.to_dict(program), **replayed}
    result = attestation(converted, _examined_once(json.dumps(converted["witness"])))
    if result["attestation"] is None:
        raise ReplayError(result["reason"])
    return dict(result["attestation"])


def _small(program: Program, definition: Definition, workload: Workload) -> Instance:
    """The instance that is replayed for ``program``: itself where it is cheap, else its witness.

    Where the smallest witness is another program (a reference loops over heads), sizes are kept: one alone, else the
    smaller ones, as few as will do.
    """
    from solar.attest import same_structure
    from solar.small import cheap

    axes = workload.validate_against(definition, definition.name)
    if elements(definition, axes) <= REPLAYED_ELEMENTS and cheap(program):
        return Instance(definition, workload, axes)
    sizes = sorted({n for name, n in axes.items() if n >= KEPT and not isinstance(definition.axes[name], AxisExpr)})
    reason = "no smaller sizes keep what its axes stand for"
    for kept in ((), *((size,) for size in sizes), *(sizes[:count] for count in range(2, len(sizes)))):
        small = witness(definition, workload, kept)
        if small is None:
            continue
        try:
            found = _program_of(json.dumps(_witness_fields(small, program.path)))
            same_structure(program, found)
        except (SolarError, InputError) as error:
            reason = str(error)
            continue
        if cheap(found, WITNESS_ELEMENTS):
            return small
        reason = f"sizes at which it is the same program are too large to replay ({small.note})"
    raise ReplayError(reason)


def _replayed(small: Instance, program: Program, definition: Definition, workload: Workload) -> dict[str, Any]:
    axes = workload.validate_against(definition, definition.name)
    return {
        "witness": _witness_fields(small, program.path),
        "reduced": {name: [size, small.axes[name]] for name, size in axes.items() if size != small.axes[name]} or None,
        "subject": canonical.digest(store.encode("definition", definition.as_dict())),
    }


def _witness_fields(small: Instance, path: str) -> dict[str, Any]:
    """What decides a replay; neither the workload's name nor its checks do."""
    workload = {
        "uuid": small.definition.name,
        "axes": small.workload.axes,
        "inputs": {name: generator.as_dict() for name, generator in small.workload.inputs.items()},
        "checks": [{"type": "exact", "output": output} for output in small.definition.outputs],
    }
    return {"definition": small.definition.as_dict(), "workload": workload, "path": path}


@functools.lru_cache(maxsize=64)
def _program_of(text: str) -> Program:
    """IR of a witness, written as JSON."""
    from solar import convert

    fields = json.loads(text)
    definition = Definition.load(fields["definition"], fields["definition"]["name"])
    workload = Workload.load(fields["workload"], definition.name)
    axes = workload.validate_against(definition, definition.name)
    return _structured(convert.convert(_extracted(definition, workload, axes, fields["path"])), workload)


@functools.lru_cache(maxsize=64)
def _examined_once(text: str) -> dict[str, Any]:
    return examined(json.loads(text))


def _seeded_inputs(small: Instance) -> Callable[[int, str], dict[str, Any]]:
    """Inputs by seed and kind, drawn once a seed; every call gives tensors of its own."""
    from solar.attest import patterned
    from solbench.inputs import draw

    drawn: dict[int, dict[str, Any]] = {}

    def inputs_for(seed: int, kind: str) -> dict[str, Any]:
        if seed not in drawn:
            drawn.clear()
            drawn[seed] = draw(small.definition, small.workload, small.axes, seed)
        return patterned(drawn[seed], kind)

    return inputs_for


def bounds_for(problem: Problem, workload: Workload, machine: Machine, *, path: str = "aten") -> dict[str, Any] | str:
    """Bound of one workload of a loaded problem (``solar.bound.v1``), or the reason why there is none."""
    from solar.bound import bound
    from solar.convert import convert

    axes = workload.validate_against(problem.definition, problem.key)
    try:
        program = _structured(convert(_extracted(problem.definition, workload, axes, path)), workload)
        return dict(bound(program, machine, rejected_formats=workload.rejected_formats))
    except SolarError as error:
        return str(error)


def bound_artifact(
    instance: Mapping[str, Any],
    references: Mapping[str, Any],
    program: Mapping[str, Any] | None,
    machine: Machine,
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
            result = dict(bound(from_dict(_body(program)), machine, rejected_formats=rejected))
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


def _structured(program: Program, workload: Workload) -> Program:
    """``program`` with the inputs named whose every draw is the same mask: they cost nothing to read."""
    masks = structures(workload)
    return replace(program, structures={tensor: masks[name] for name, tensor in program.inputs if name in masks})


def structures(workload: Workload) -> dict[str, str]:
    """Inputs whose every draw is the same mask, by name."""
    return {
        name: "lower_triangular"
        for name, generator in workload.inputs.items()
        if isinstance(generator, LowerTriangular)
    }


def _extracted(definition: Definition, workload: Workload, axes: Mapping[str, int], path: str) -> OperatorGraph:
    from solar.extract import extract
    from solbench.corpus.reference import load_reference

    return extract(
        load_reference(definition),
        solar_inputs(definition, workload, axes),
        path=path,
        outputs=list(definition.outputs),
        in_place=definition.in_place,
    )


def _body(artifact: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in artifact.items() if name != "kind"}
