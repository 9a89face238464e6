"""A problem small enough for a test, and what a fixture says of itself."""

from __future__ import annotations

import re
from pathlib import Path

PROBLEM = """\
schema: solbench.definition.v1
name: scale_shift
suite: tests
axes: {N: {type: var}}
inputs:
  x: {shape: [N], dtype: float32}
  scale: {shape: null, dtype: float64}
outputs:
  y: {shape: [N], dtype: float32}
"""
REFERENCE = "def run(x, scale):\n    return x * scale + 1\n"
WORKLOADS = """\
schema: solbench.workloads.v1
defaults:
  inputs: {x: {type: normal}, scale: {type: constant, value: 2.5}}
  checks: [{type: numeric, output: y, atol: 1.0e-5, rtol: 1.0e-5}]
  stress_rounds: [{label: large, inputs: {x: {type: normal, mean: 1000}, scale: {type: constant, value: -3}}}]
workloads:
  - {uuid: small, axes: {N: 1000}}
  - {uuid: larger, axes: {N: 5000}}
"""


def write_problem(folder: Path, **files: str) -> Path:
    """The problem's folder, with ``files`` (problem, reference, workloads) in place of the usual ones."""
    folder.mkdir(parents=True)
    (folder / "problem.yaml").write_text(files.get("problem", PROBLEM))
    (folder / "reference.py").write_text(files.get("reference", REFERENCE))
    (folder / "workloads.yaml").write_text(files.get("workloads", WORKLOADS))
    return folder


def headers(path: Path) -> dict[str, str]:
    """Fields of the comment at the head of a fixture: ``# expect: PASSED``; a word alone is a field with no text."""
    fields = {}
    for line in path.read_text().splitlines():
        match = re.match(r"(?:#|//) ([a-z ]+?)(?: [A-Z0-9]+)?(?:: (.*))?$", line)
        if not line.startswith(("#", "//")):
            break
        if match:
            fields[match[1]] = (match[2] or "").rstrip()
    return fields
