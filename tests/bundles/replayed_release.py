"""Releases whose graphs, IRs and attestations really come from the stage functions, and what a forger may do to them.

A problem is named by its key; the text that is published may be another than the one that the graph was made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sample_release

from solbench import bounds
from solbench.model.definition import Definition
from solbench.model.workload import Workload
from solbench.release import bundle, readiness, schemas
from solbench.release.root import STAGES, build_release
from solbench.store import Descriptor, Store, index_bytes

DOUBLE = "def run(x):\n    return x * 2\n"
SQUARE = "def run(x):\n    return x * x\n"
Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Made:
    """One problem: ``reference`` gives graph, IR and attestation; ``published`` is the definition's text, the same
    where it is None. ``attestation`` changes what is published of that; ``hidden``: it says that there is no
    ``graph``, or leaves out the ``ir``."""

    reference: str = DOUBLE
    published: str | None = None
    sizes: Mapping[str, int] | None = None
    attestation: Change = dict
    hidden: str | None = None


def definition(key: str, reference: str) -> dict[str, Any]:
    return Definition.load({**sample_release.definition(key).as_dict(), "reference": reference}, key).as_dict()


def predicate(torch: str | None = None) -> dict[str, Any]:
    """Provenance that names a PyTorch, by default the one that is installed."""
    built = sample_release.PREDICATE["buildDefinition"]
    return {
        "buildDefinition": built,
        "runDetails": {"builder": {"id": "t", "version": {"torch": torch or version("torch")}}},
    }


def build(folder: Path, problems: Mapping[str, Made], torch: str | None = None) -> Path:
    """The directory bundle ``folder/bundle`` of a release of ``problems``."""
    root = folder / "store"
    stages = sample_release.Stages(root)
    for stage in (*STAGES, "release"):
        (root / stage / "objects").mkdir(parents=True)
        stages.outputs[stage] = sample_release.StageOutput(root / stage / "objects")
    machine = stages.put("bounds", "hardware/gfx1200", "hardware", sample_release.machine("gfx1200"))
    for key, made in problems.items():
        _put(stages, key, made, machine)
    stages.finish()
    one = Store(root)
    sections = {stage: one.index(stage) for stage in ("corpus", "workloads", "bounds", "code")}
    matrix = readiness.static(sections, one.load, "gfx1200")
    assert matrix is not None
    stages.put("readiness", "gfx1200/static", "readiness", matrix.as_dict())
    stages.finish()
    output = sample_release.StageOutput(root / "release" / "objects")
    build_release(one, "sample", output)
    (root / "release.json").write_bytes(index_bytes(output.index))
    bundle.write_directory(one, folder / "bundle", predicate(torch))
    return folder / "bundle"


def _put(stages: sample_release.Stages, key: str, made: Made, machine: Descriptor) -> None:
    text = made.reference if made.published is None else made.published
    source = definition(key, made.reference)
    published = stages.put("corpus", key, "definition", definition(key, text))
    for uuid, n in (made.sizes or {"w1": 64}).items():
        name = f"{key}/{uuid}"
        workload = Workload.load(sample_release.workload(uuid, n).as_dict(), uuid)
        instance = {
            "schema": "solbench.workload-instance.v1",
            "problem": key,
            "definition": published.as_dict(),
            "workload": workload.as_dict(),
            "axes": {"n": n},
        }
        graph = bounds.record_graph(instance, {**source, "path": "aten"})["graph"]
        found = bounds.convert_and_attest(instance, {**source, "graph": graph})
        assert found["attestation"] is not None, found["reason"]
        statement = found["attestation"]
        for subject in statement["subject"]:
            if subject["name"] == "definition":
                subject["digest"] = {"blake3": published.digest.removeprefix("blake3:")}
        model = schemas.machine(sample_release.machine("gfx1200"))
        references = {
            "instance": stages.put("workloads", name, "workload", instance).as_dict(),
            "graph": None, "hardware": machine.as_dict(), "attestation": None,
        }  # fmt: skip
        program, reason = None, "no operator graph"
        if made.hidden == "graph":
            reason = "cannot be traced"
            stages.put("graphs", name, "no-graph", {"schema": schemas.SCHEMAS["no-graph"], "reason": reason})
        else:
            stages.put("graphs", name, "operator-graph", graph)
        if made.hidden is None:
            program, reason = found["program"], None
            ir = stages.put("einsums", f"{name}/graph", "einsum-graph", program)
            attested = stages.put("einsums", f"{name}/attestation", "attestation", made.attestation(statement))
            references |= {"graph": ir.as_dict(), "attestation": attested.as_dict()}
        bound = bounds.bound_artifact(instance, references, program, model, reason)
        stages.put("bounds", f"{name}@gfx1200", "bound", bound)
