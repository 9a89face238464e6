"""The IR of every module as text and as an artifact."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from breadth_module import converted, load_case

from solar.einsum import JSON_SCHEMA, Program, to_dict, to_text

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "solar"))
from schema_check import problems

MODULES = sorted(Path(__file__).parent.glob("*/*.py"))


@pytest.fixture(scope="module")
def programs() -> dict[str, Program]:
    return {f"{path.parent.name}/{path.stem}": converted(load_case(path)) for path in MODULES}


def test_text_tells_programs_apart_and_names_every_operation(programs: dict[str, Program]) -> None:
    texts = {name: to_text(program) for name, program in programs.items()}
    assert len(set(texts.values())) == len(texts) >= 120
    for name, program in programs.items():
        lines = texts[name].splitlines()
        for op in program.ops:
            written = [
                line for line in lines if line.startswith(", ".join(f"%{output}" for output in op.outputs) + " =")
            ]
            assert len(written) == 1, (name, op.name)
            assert written[0].split(" = ")[1].startswith(op.kind)
            assert op.function in written[0] or op.kind == "einsum"


def test_artifacts_are_as_the_schema_says(programs: dict[str, Program]) -> None:
    for name, program in programs.items():
        assert problems(JSON_SCHEMA, to_dict(program)) == [], name
