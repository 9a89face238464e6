"""One problem and one session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_problem import write_problem

from solbench.corpus.load import Problem, load_problem
from solbench.evaluate.session import Session
from solbench.evaluate.turns import Limits


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return load_problem(write_problem(tmp_path_factory.mktemp("problems") / "T" / "tests" / "scale_shift"))


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    limits = Limits(load_s=5.0, first_call_s=5.0, call_s=5.0)
    with Session(limits, cache=tmp_path_factory.mktemp("build")) as session:
        yield session
