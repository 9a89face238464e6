"""Modules of tensor algebra: each is extracted, converted, attested at its own size and bound, complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from breadth_module import check

MODULES = sorted((Path(__file__).parent / "tensor").glob("*.py"))


def test_there_are_enough() -> None:
    assert len(MODULES) >= 60


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module(path: Path) -> None:
    check(path)
