"""Path torchview on the breadth set: where it can record, the bound is that of path aten; the program is attested."""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth_module import Case, attested, declared, load_case

from solar.bound import bound
from solar.convert import convert
from solar.errors import ExtractionError
from solar.extract import extract
from solar.graph import OperatorGraph
from solar.hardware import load

MODULES = sorted(path for folder in ("nn", "tensor") for path in (Path(__file__).parent / folder).glob("*.py"))
GFX1200 = load("gfx1200")
# Why path torchview records nothing, by what the reason says; a module may have no other.
REFUSED = (
    "path torchview cannot record a backward pass; use path aten",
    "draws random numbers, which this path cannot record",
    "is no public function that path torchview can record; use path aten",
)


def recorded(path: Path) -> tuple[Case, OperatorGraph] | None:
    """Case and graph, or None where the path refuses for one of the reasons above."""
    case = load_case(path)
    try:
        graph = extract(case.run, declared(case), path="torchview", in_place=case.option("IN_PLACE"))
    except ExtractionError as error:
        assert str(error).endswith(REFUSED), error
        return None
    return case, graph


def _plain(path: Path) -> bool:
    text = path.read_text()
    return not any(word in text for word in ("autograd", "backward", "manual_seed", "Generator", "torch.ops."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_bound_is_that_of_path_aten(path: Path) -> None:
    found = recorded(path)
    if found is None:
        assert not _plain(path), "a module without gradients, random numbers or bare operators is recorded"
        return
    case, graph = found
    other = extract(case.run, declared(case), in_place=case.option("IN_PLACE"))
    first, second = (bound(convert(item), GFX1200) for item in (graph, other))
    for name in ("t_sol_s", "binds", "macs", "dense_macs", "uncounted", "compute", "memory"):
        assert first[name] == second[name], name


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_program_is_attested(path: Path) -> None:
    found = recorded(path)
    if found is not None:
        case, graph = found
        attested(case, convert(graph))
