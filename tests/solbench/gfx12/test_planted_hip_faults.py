"""Each fault of ``faults/planted.hip`` is found where it is, by its kind; its twin without it is clean and right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from solbench.code.hip import compile_hip
from solbench.errors import UndecidedError
from solbench.gfx12.hip_launch import HipHost
from solbench.gfx12.hip_library import host_library
from solbench.gfx12.run import Options
from solbench.model.solution import Solution
from tests.solbench.code.test_hip import needs_compiler
from tests.solbench.gfx12.faults.hip_faults import FAULTS, Fault

SOURCE = (Path(__file__).parent / "faults" / "planted.hip").read_text()
OPTIONS = Options(
    poison="nan", strict_waits=True, races=True, uninitialised=True, max_instructions=1_000_000, deadline_s=20.0
)
Run = Callable[[Fault, bool, Options], tuple[torch.Tensor, torch.Tensor, HipHost]]

pytestmark = needs_compiler
each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Calls one of the host functions on new tensors: the result, what the twin is to give, and the host."""
    spec = {
        "languages": ["hip_cpp"], "entry_point": "planted.hip::overlap_", "binding": "c",
        "target_hardware": ["gfx1200"], "destination_passing_style": True, "compile_options": {"hip_cflags": ["-g1"]},
    }  # fmt: skip
    sources = [{"path": "planted.hip", "content": SOURCE}]
    named = {"name": "planted", "definition": "d", "author": "a", "spec": spec, "sources": sources}
    solution = Solution.load(named, "planted.hip")
    code = compile_hip(solution, "gfx1200", 120)
    library = tmp_path_factory.mktemp("planted") / "host.so"
    library.write_bytes(host_library(solution, "gfx1200", 120))

    def called(fault: Fault, right: bool, options: Options) -> tuple[torch.Tensor, torch.Tensor, HipHost]:
        arguments = fault.arguments(torch.Generator().manual_seed(3))
        copies = {name: tensor.clone() for name, tensor in arguments.items()}
        for name in (fault.output, "between"):
            copies.pop(name, None)
        if fault.name == "plain_flag":
            copies.pop("flag")
        expected = fault.expected(**copies)
        host = HipHost(code, library, options)
        if fault.read_only:
            host.launches.storages.protect(arguments[fault.read_only])
        host.call(f"{fault.name}_", {**arguments, "right": int(right)})
        return arguments[fault.output], expected, host

    return called


def line_of(fault: Fault) -> int:
    (line,) = [number for number, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"FAULT {fault.name}")]
    return line


def close(result: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(result.double(), expected.double(), rtol=1e-5, atol=1e-5)


@each_fault
def test_twin_without_the_fault_is_clean_and_right(fault: Fault, run: Run) -> None:
    result, expected, host = run(fault, True, OPTIONS)
    assert not host.launches.findings, [str(finding) for finding in host.launches.findings]
    assert close(result, expected)


@each_fault
def test_fault_is_found(fault: Fault, run: Run) -> None:
    if fault.kind == "limit":
        with pytest.raises(UndecidedError, match="limit of instructions"):
            run(fault, False, replace(OPTIONS, max_instructions=50_000))
    elif fault.kind == "order":
        orders = [run(fault, False, replace(OPTIONS, order="permuted", seed=seed))[0].item() for seed in range(6)]
        assert len(set(orders)) > 1
    elif fault.kind == "result":
        result, expected, host = run(fault, False, OPTIONS)
        assert not close(result, expected)
        assert not host.launches.findings, [str(finding) for finding in host.launches.findings]
    else:
        _, _, host = run(fault, False, OPTIONS)
        found = {(finding.kind, finding.place.source and finding.place.source[1]) for finding in host.launches.findings}
        assert (fault.kind, line_of(fault)) in found, [str(finding) for finding in host.launches.findings]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@each_fault
def test_twin_is_clean_and_right_in_any_order(fault: Fault, seed: int, run: Run) -> None:
    result, expected, host = run(fault, True, replace(OPTIONS, order="permuted", seed=seed))
    assert not host.launches.findings, [str(finding) for finding in host.launches.findings]
    assert close(result, expected)
