"""Definitions without workloads: a folder with ``defaults.yaml`` where a problem has ``workloads.yaml``.

``defaults.yaml`` holds what every workload shares: generators of the inputs, checks of the outputs, and where there are
any, stress rounds and rejected formats. A rule elsewhere gives the axes. Two generators are resolved for each workload:
a constant may be an expression over the axes, as a scalar input repeats an axis (a window); and ``{type: custom,
frozen: true}`` is drawn once and listed by its values, for what decides how much work there is (lengths, offsets). Only
that runs code, the reference's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.corpus.document import read_yaml
from solbench.corpus.load import load_definition, load_solutions
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.expression import evaluate
from solbench.model.solution import Solution
from solbench.model.workload import Workload

DEFAULTS_SCHEMA = "solbench.workload-defaults.v1"
_REQUIRED, _OPTIONAL = ("schema", "inputs", "checks"), ("stress_rounds", "rejected_formats")
FROZEN = {"type": "custom", "frozen": True}


@dataclass(frozen=True)
class Template:
    """A Definition, the solutions kept beside it, and what its workloads share: fields of a workload, some of them with
    expressions.
    """

    path: Path
    corpus: str
    definition: Definition
    shared: Mapping[str, Any]
    solutions: tuple[Solution, ...] = ()

    @property
    def key(self) -> str:
        """``<corpus>/<suite>/<name>``, as of a problem."""
        return f"{self.corpus}/{self.definition.suite}/{self.definition.name}"

    def workload(self, uuid: str, axes: Mapping[str, int]) -> Workload:
        """The workload of these ``var`` axes, valid against the Definition; :class:`InputError` where it is not."""
        where = f"{self.path / 'defaults.yaml'}: {uuid}"
        names = self.definition.resolve_axes(dict(axes), where)
        fields = {"uuid": uuid, "axes": dict(axes), **self.shared}
        inputs = fields["inputs"]
        frozen = {name: {"type": "custom"} for name, generator in inputs.items() if generator == FROZEN}
        fields["inputs"] = _resolved(inputs, names, f"{where}: inputs") | frozen
        fields["stress_rounds"] = [
            {**stress, "inputs": _resolved(stress["inputs"], names, f"{where}: stress_rounds")}
            for stress in self.shared.get("stress_rounds", ())
        ]
        if frozen:
            fields["inputs"] |= _frozen(self.definition, Workload.load(fields, where), names, frozen)
        workload = Workload.load(fields, where)
        workload.validate_against(self.definition, where)
        return workload


def _resolved(inputs: Mapping[str, Any], axes: Mapping[str, int], where: str) -> dict[str, Any]:
    """The generators with the value of each constant in place of its expression."""
    resolved = dict(inputs)
    for name, generator in inputs.items():
        value = generator.get("value") if isinstance(generator, Mapping) else None
        if isinstance(value, str) and generator.get("type") == "constant":
            resolved[name] = {**generator, "value": evaluate(value, axes, f"{where}.{name}.value")}
    return resolved


def _frozen(
    definition: Definition, workload: Workload, axes: Mapping[str, int], names: Iterable[str]
) -> dict[str, Any]:
    """Generators that list the values of these custom inputs, drawn by the workload's name alone."""
    from solbench.inputs import custom_inputs  # PyTorch, which most Definitions do not need here

    workload.validate_against(definition, definition.name)
    key = int(canonical.derived_key("frozen input", [workload.uuid])[:8], 16)
    drawn = custom_inputs(definition, workload.inputs, axes, key)
    return {name: {"type": "values", "values": drawn[name].flatten().tolist()} for name in names}


def load_templates(root: Path) -> list[Template]:
    """Every definition without workloads below ``root`` (``problems/``), sorted by key; its folder must be its key."""
    if not root.is_dir():
        raise InputError(str(root), "no such folder")
    templates = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        if "defaults.yaml" not in files or "workloads.yaml" in files:
            continue
        path = Path(folder)
        template = load_template(path, corpus=path.relative_to(root).parts[0])
        if path.relative_to(root).as_posix() != template.key:
            raise InputError(folder, f"a definition's folder is <corpus>/<suite>/<name>, here {template.key}")
        templates.append(template)
    return sorted(templates, key=lambda template: template.key)


def load_template(path: Path, *, corpus: str) -> Template:
    """One folder's Definition, defaults and solutions."""
    where = str(path / "defaults.yaml")
    document = read_yaml(path / "defaults.yaml")
    if not isinstance(document, Mapping) or not set(_REQUIRED) <= set(document) <= {*_REQUIRED, *_OPTIONAL}:
        raise InputError(where, f"must be a mapping of {', '.join(_REQUIRED)}, perhaps {' and '.join(_OPTIONAL)}")
    if document["schema"] != DEFAULTS_SCHEMA:
        raise InputError(f"{where}: schema", f"must be {DEFAULTS_SCHEMA}")
    if not isinstance(document["inputs"], Mapping) or not isinstance(document["checks"], list):
        raise InputError(where, "inputs must be a mapping, checks a list")
    rounds = document.get("stress_rounds", [])
    if not isinstance(rounds, list) or not all(
        isinstance(stress, Mapping) and isinstance(stress.get("inputs"), Mapping) for stress in rounds
    ):
        raise InputError(f"{where}: stress_rounds", "must be a list of rounds with a mapping of inputs")
    shared = {name: value for name, value in document.items() if name != "schema"}
    definition = load_definition(path)
    return Template(path, corpus, definition, shared, load_solutions(path, definition))
