"""A generated corpus on disk: a folder that ``solbench corpus`` reads with ``--root``, and the decisions behind it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from solbench.corpus.definitions import Template, load_template
from solbench.corpus.llm_core import generate
from solbench.corpus.llm_core.generate import View
from solbench.corpus.llm_core.rules import Rule, Rules
from solbench.corpus.llm_core.scale import tensor_shapes
from solbench.corpus.load import WORKLOADS_SCHEMA
from solbench.errors import InputError
from solbench.model.configuration import SCHEMA, Configuration, Decision, Slot
from solbench.model.definition import resolve_shape
from solbench.model.workload import Workload
from solbench.workspace import new_folder


def write_view(view: View, rules: Rules, corpus: Path, folder: Path) -> None:
    """Write the new ``folder``, whole or not at all: ``view.yaml``, and a folder of each generated Definition.

    ``corpus`` (``problems/LLM_CORE``) has the Definitions in ``<family>/<name>``. Raises :class:`InputError` where
    ``folder`` exists, and for a Definition that is missing, has other tensors than its rule or takes no workload.
    """
    with new_folder(folder) as temporary:
        for decision in view.generated:
            template = load_template(corpus / decision.family / decision.name, corpus=corpus.name)
            path = temporary / template.key
            path.mkdir(parents=True)
            for name in ("problem.yaml", "reference.py"):
                shutil.copyfile(template.path / name, path / name)
            document = _workloads_document(decision, rules.rules[decision.name], template)
            (path / "workloads.yaml").write_text(_yaml(document))
        document = configuration(view, corpus.name).model_dump(mode="json", exclude_defaults=True)
        (temporary / "view.yaml").write_text(_yaml({"schema": SCHEMA} | document))


def _workloads_document(decision: generate.Decision, rule: Rule, template: Template) -> dict[str, Any]:
    workloads = generated_workloads(decision, rule, template)
    documents = [workload.model_dump(mode="json", exclude_defaults=True) for workload in workloads]
    # A generator may depend on the axes; what does not is written once.
    shared = {
        name: generator
        for name, generator in documents[0]["inputs"].items()
        if all(fields["inputs"][name] == generator for fields in documents)
    }
    defaults: dict[str, Any] = {"inputs": shared}
    for name in ("checks", "stress_rounds", "rejected_formats"):
        if name in documents[0] and all(fields.get(name) == documents[0][name] for fields in documents):
            defaults[name] = documents[0][name]
    rows = []
    for fields in documents:
        own = {name: generator for name, generator in fields.pop("inputs").items() if name not in shared}
        row = {name: value for name, value in fields.items() if name not in defaults}
        rows.append({**row, **({"inputs": own} if own else {})})
    return {"schema": WORKLOADS_SCHEMA, "defaults": defaults, "workloads": rows}


def generated_workloads(decision: generate.Decision, rule: Rule, template: Template) -> list[Workload]:
    """The workloads of a decision; :class:`InputError` where the Definition has other tensors than its rule."""
    for workload in decision.workloads:
        _check_tensors(rule, template, workload.axes)
    return [template.workload(workload.uuid, workload.axes) for workload in decision.workloads]


def _check_tensors(rule: Rule, template: Template, axes: Mapping[str, int]) -> None:
    definition = template.definition
    resolved = definition.resolve_axes(dict(axes), str(template.path))
    for group, specs, tensors in (
        ("inputs", definition.inputs, rule.inputs),
        ("outputs", definition.outputs, rule.outputs),
    ):
        declared = {
            name: (resolve_shape(spec, resolved), spec.dtype) for name, spec in specs.items() if spec.shape is not None
        }
        for name in declared.keys() | tensors.keys():
            ruled = (tensor_shapes(rule, axes)[name], tensors[name].dtype) if name in tensors else None
            if declared.get(name) != ruled:
                what = f"the Definition has {declared.get(name)}, its rule {ruled}"
                raise InputError(f"{template.path}: {group}.{name}", what)


def configuration(view: View, corpus: str) -> Configuration:
    """The decisions of ``view`` as the record that a release holds; problems by their keys below ``corpus``."""
    return Configuration(
        schema=SCHEMA,
        corpus=corpus,
        algorithm=view.algorithm,
        target=view.target,
        capacity_class_gib=view.class_gib,
        profiles=view.profiles,
        decisions=tuple(
            Decision(
                problem=f"{corpus}/{decision.family}/{decision.name}",
                status=decision.status,
                detail=decision.detail,
                scale=decision.scale,
                workloads=tuple(
                    Slot(
                        uuid=workload.uuid,
                        slot=workload.slot,
                        role=workload.role,
                        regime=workload.regime,
                        peak_bytes=workload.peak_bytes,
                    )
                    for workload in decision.workloads
                ),
            )
            for decision in view.decisions
        ),
    )


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120))
