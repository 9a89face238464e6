"""Definitions without workloads: a folder with ``defaults.yaml`` where a problem has ``workloads.yaml``.

``defaults.yaml`` holds what every workload shares, the generators of the inputs and the checks of the outputs; a rule
elsewhere gives the axes. A constant may be an expression over them: it is how a scalar input repeats an axis (a window).
Nothing here runs code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.corpus.document import read_yaml
from solbench.corpus.load import load_definition
from solbench.errors import InputError
from solbench.model.definition import Definition
from solbench.model.expression import evaluate
from solbench.model.workload import Workload

DEFAULTS_SCHEMA = "solbench.workload-defaults.v1"


@dataclass(frozen=True)
class Template:
    """A Definition and what its workloads share."""

    path: Path
    corpus: str
    definition: Definition
    inputs: Mapping[str, Any]
    checks: tuple[Any, ...]

    @property
    def key(self) -> str:
        """``<corpus>/<suite>/<name>``, as of a problem."""
        return f"{self.corpus}/{self.definition.suite}/{self.definition.name}"

    def workload(self, uuid: str, axes: Mapping[str, int]) -> Workload:
        """The workload of these ``var`` axes, valid against the Definition; :class:`InputError` where it is not."""
        where = f"{self.path / 'defaults.yaml'}: {uuid}"
        names = self.definition.resolve_axes(dict(axes), where)
        inputs = {name: _resolved(fields, names, f"{where}: inputs.{name}") for name, fields in self.inputs.items()}
        fields = {"uuid": uuid, "axes": dict(axes), "inputs": inputs, "checks": list(self.checks)}
        workload = Workload.load(fields, where)
        workload.validate_against(self.definition, where)
        return workload


def _resolved(generator: Any, axes: Mapping[str, int], where: str) -> Any:
    """The generator with the value of a constant in place of its expression."""
    value = generator.get("value") if isinstance(generator, Mapping) else None
    if not isinstance(value, str) or generator.get("type") != "constant":
        return generator
    return {**generator, "value": evaluate(value, axes, f"{where}.value")}


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
    """One folder's Definition and defaults."""
    where = str(path / "defaults.yaml")
    document = read_yaml(path / "defaults.yaml")
    if not isinstance(document, Mapping) or set(document) != {"schema", "inputs", "checks"}:
        raise InputError(where, "must be a mapping of schema, inputs and checks")
    if document["schema"] != DEFAULTS_SCHEMA:
        raise InputError(f"{where}: schema", f"must be {DEFAULTS_SCHEMA}")
    if not isinstance(document["inputs"], Mapping) or not isinstance(document["checks"], list):
        raise InputError(where, "inputs must be a mapping, checks a list")
    return Template(path, corpus, load_definition(path), document["inputs"], tuple(document["checks"]))
