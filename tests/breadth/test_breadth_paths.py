"""Path torchview on the whole breadth set: what it records is attested and has the bound of path aten, and what it
cannot record it refuses for one of a few reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from breadth_module import TARGET, attested, converted, load_case

from solar.bound import bound
from solar.errors import ExtractionError
from solar.hardware import load

MODULES = sorted(Path(__file__).parent.glob("*/*.py"))
REFUSALS = r"backward pass|draws random numbers|no public function"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_torchview_agrees(path: Path) -> None:
    case = load_case(path)
    try:
        program = converted(case, "torchview")
    except ExtractionError as error:
        assert re.search(REFUSALS, str(error))
        return
    attested(case, program, seeds=(1,))
    machine = load(TARGET)
    one, other = bound(program, machine), bound(converted(case), machine)
    for key in ("t_sol_s", "macs", "coverage", "uncounted"):
        assert one[key] == other[key]
    assert one["memory"]["live_bytes"] == other["memory"]["live_bytes"]
