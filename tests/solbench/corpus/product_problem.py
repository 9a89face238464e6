"""One small problem, a matrix product, that tests of the controls change in one place at a time."""

import copy
from pathlib import Path
from typing import Any

from solbench.corpus.load import Problem
from solbench.corpus.reduce import Instance, reduced
from solbench.corpus.validate import Finding
from solbench.inputs import draw
from solbench.model.definition import Definition
from solbench.model.workload import Workload

MATMUL: dict[str, Any] = {
    "name": "product",
    "axes": {"M": {"type": "var"}, "K": {"type": "var"}},
    "inputs": {
        "a": {"shape": ["M", "K"], "dtype": "float32"},
        "b": {"shape": ["K", "M"], "dtype": "float32", "role": "weight"},
    },
    "outputs": {"y": {"shape": ["M", "M"], "dtype": "float32"}},
    "reference": "import torch\n\ndef run(a, b):\n    return torch.matmul(a, b)\n",
}
WORKLOAD: dict[str, Any] = {
    "uuid": "w0",
    "axes": {"M": 24, "K": 32},
    "inputs": {"a": {"type": "normal"}, "b": {"type": "normal", "std": "1/sqrt(K)"}},
    "checks": [{"type": "numeric", "output": "y", "atol": 2e-5, "rtol": 2e-5}],
}


def problem(definition: dict[str, Any] | None = None, **workload: Any) -> Problem:
    """The product with these fields of its Definition and its workload changed."""
    made = Definition.load({**copy.deepcopy(MATMUL), **(definition or {})}, "d")
    one = Workload.load({**copy.deepcopy(WORKLOAD), **workload}, "w")
    one.validate_against(made, "w")
    return Problem(Path("."), "C", made, (one,), ())


def computing(expression: str) -> Problem:
    """The product with another expression in place of ``a @ b``."""
    return problem({"reference": f"import torch\n\ndef run(a, b):\n    return {expression}\n"})


def reduced_of(made: Problem) -> Instance:
    return reduced(made.definition, made.workloads[0])


def drawn(made: Problem, seed: int = 1) -> tuple[Instance, Any]:
    """The instance of the first workload and its inputs."""
    instance = reduced_of(made)
    return instance, draw(instance.definition, instance.workload, instance.axes, seed)


def failed(findings: list[Finding]) -> set[str]:
    """Names of the controls that did not end as they must."""
    return {finding.control for finding in findings if finding.state in ("failed", "not run")}


def states(findings: list[Finding]) -> dict[str, str]:
    return {finding.control: finding.state for finding in findings}
