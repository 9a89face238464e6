"""In the confined children of :mod:`solbench.release.replay`: makes graphs, IRs and attestations of one problem again.

:func:`converted` reads recorded graphs and never loads a reference. :func:`remade` runs one, which is hostile code in
this very process: it could answer whatever it likes, for its own problem.
"""

from __future__ import annotations

import resource
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from solbench import canonical
from solbench.release.schemas import SCHEMAS
from solbench.store import Descriptor, encode

# A folder that the child's first confinement has closed.
_NOWHERE: Final = "/dev/shm"
# What the descriptors that are open already, answers and log, may grow to.
_FILE_BYTES: Final = 16 << 20
_REASON: Final = 1000


def converted(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """The IR of each recorded graph, by digest."""
    from solar import convert, einsum, graph
    from solar.errors import SolarError
    from solbench.bounds import structures
    from solbench.model.workload import Workload

    _close()
    for item in request["workloads"]:
        if item["graph"] is None:
            yield {"workload": item["name"]}
            continue
        workload = Workload.load(item["instance"]["workload"], item["name"])
        try:
            program = convert.convert(graph.from_dict(item["graph"]))
            masks = structures(workload)
            named = {tensor: masks[name] for name, tensor in program.inputs if name in masks}
            made = _made("einsum-graph", einsum.to_dict(replace(program, structures=named)))
        except SolarError as error:
            made = _missing(str(error))
        yield {"workload": item["name"], "einsum": made}


def remade(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Graph, IR and attestation of each workload from the reference, by digest, as the stages make them."""
    import torch

    from solar.extract import extract
    from solar.graph import Input

    warnings.simplefilter("ignore")
    # PyTorch loads what traces, and makes folders for it, when it first does.
    extract(lambda x: x + x, {"x": Input((2,), "float32")}, path=request["path"], outputs=["y"])
    _close()
    # As in the processes of the stages.
    torch.set_num_threads(1)
    replays: dict[str, dict[str, Any]] = {}
    for item in request["workloads"]:
        try:
            answer = _remade(item, request["definition"], request["path"], replays)
        except BaseException as error:  # noqa: BLE001 (the boundary to foreign code)
            answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:_REASON]}
        yield {"workload": item["name"], **answer}


def _remade(
    item: Mapping[str, Any], definition: Mapping[str, Any], path: str, replays: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    from solbench.bounds import attestation, convert_and_reduce, examined, record_graph

    instance = item["instance"]
    found = record_graph(instance, {**definition, "path": path})
    graph = found["graph"]
    answer = {"graph": _missing(found["reason"]) if graph is None else _made("operator-graph", graph)}
    if item["graph"] is None:
        return answer
    # From the recorded graph, as in the stage: where it is of other work, its witness is not this reference's.
    result = convert_and_reduce(instance, {**definition, "graph": item["graph"]})
    if result["witness"] is not None:
        key = canonical.digest(canonical.dumps(result["witness"]))
        if key not in replays:
            replays[key] = examined(result["witness"])
        result = attestation(result, replays[key])
    if result["program"] is None:
        return {**answer, "einsum": _missing(result["reason"])}
    return {
        **answer,
        "einsum": _made("einsum-graph", result["program"]),
        "attestation": _made("attestation", result["attestation"]),
    }


def _made(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {**Descriptor.of(kind, encode(kind, value)).as_dict(), "reason": None}


def _missing(reason: str) -> dict[str, Any]:
    made = _made("no-graph", {"schema": SCHEMAS["no-graph"], "reason": reason})
    return {**made, "reason": reason[:_REASON]}


def _close() -> None:
    """Confine this process once more: it may write to nothing but what it has open, its answers and its log.

    The folder of this child alone was open to it, and two sets of rules leave what both allow.
    """
    from solbench.evaluate import sandbox

    limit = min(_FILE_BYTES, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    sandbox.confine(_NOWHERE, memory_bytes=None, cpu_s=resource.getrlimit(resource.RLIMIT_CPU)[1])
