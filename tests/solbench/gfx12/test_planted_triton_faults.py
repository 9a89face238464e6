"""Each fault of ``faults/triton_faults.py`` is found where it is, by its kind; its twin is clean and right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.errors import UndecidedError
from solbench.gfx12.launches import Launches
from solbench.gfx12.run import Options
from solbench.gfx12.triton_launch import launching
from tests.solbench.gfx12.faults import triton_faults
from tests.solbench.gfx12.faults.triton_faults import FAULTS, Fault

SOURCE = Path(triton_faults.__file__).read_text()
OPTIONS = Options(
    poison="nan", strict_waits=True, races=True, uninitialised=True, max_instructions=3_000_000, deadline_s=20.0
)

each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


def called(fault: Fault, right: bool, options: Options) -> tuple[bool, Launches]:
    """Whether the result is right, and what was launched."""
    tensors: dict[str, Any] = fault.tensors(torch.Generator().manual_seed(4))
    expected = fault.expected(**{name: v.clone() if hasattr(v, "clone") else v for name, v in tensors.items()})
    with launching(options) as launches:
        if fault.read_only:
            launches.storages.protect(tensors[fault.read_only])
        result = fault.run(right, **tensors)
    return torch.allclose(result.double(), expected.double(), rtol=1e-5, atol=1e-5), launches


def line_of(fault: Fault) -> int:
    (line,) = [number for number, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"# FAULT {fault.name}")]
    return line


@each_fault
def test_twin_without_the_fault_is_clean_and_right(fault: Fault) -> None:
    right, launches = called(fault, True, OPTIONS)
    assert not launches.findings, [str(finding) for finding in launches.findings]
    assert right


@each_fault
def test_fault_is_found(fault: Fault) -> None:
    if fault.kind == "limit":
        with pytest.raises(UndecidedError, match="limit of instructions"):
            called(fault, False, replace(OPTIONS, max_instructions=50_000))
    elif fault.kind == "result":
        right, launches = called(fault, False, OPTIONS)
        assert not right and not launches.findings, [str(finding) for finding in launches.findings]
    else:
        _, launches = called(fault, False, OPTIONS)
        found = {(finding.kind, finding.place.source and finding.place.source[1]) for finding in launches.findings}
        assert (fault.kind, line_of(fault)) in found, [str(finding) for finding in launches.findings]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@each_fault
def test_twin_is_clean_and_right_in_any_order(fault: Fault, seed: int) -> None:
    right, launches = called(fault, True, replace(OPTIONS, order="permuted", seed=seed))
    assert not launches.findings, [str(finding) for finding in launches.findings]
    assert right
