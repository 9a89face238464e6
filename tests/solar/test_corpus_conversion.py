"""Every problem of the corpus goes through extraction, conversion and attestation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solar.attest import KINDS, SEEDS, attest, patterned
from solar.convert import convert
from solar.einsum import Program
from solar.extract.aten import extract
from solbench import canonical
from solbench.bounds import solar_inputs
from solbench.corpus.load import load_problem
from solbench.corpus.reduce import Instance, reduced
from solbench.corpus.reference import load_reference
from solbench.inputs import draw

ROOT = Path(__file__).resolve().parents[2] / "problems"
FOLDERS = sorted(path.parent for path in ROOT.glob("AMD_AKA/*/*/problem.yaml"))
ELEMENTS = 2**12


def converted(instance: Instance) -> Program:
    definition = instance.definition
    inputs = solar_inputs(definition, instance.workload, instance.axes)
    graph = extract(load_reference(definition), inputs, outputs=list(definition.outputs), in_place=definition.in_place)
    return convert(graph)


def instances(folder: Path) -> Iterator[tuple[Instance, Instance]]:
    """Each workload at its own size and at a small one."""
    problem = load_problem(folder)
    for workload in problem.workloads:
        axes = workload.validate_against(problem.definition, problem.key)
        yield Instance(problem.definition, workload, axes), reduced(problem.definition, workload, ELEMENTS)


def attested(whole: Instance, small: Instance, seeds: tuple[int, ...], kinds: tuple[str, ...]) -> None:
    statement = attest(
        converted(small),
        load_reference(small.definition),
        lambda seed, kind: patterned(draw(small.definition, small.workload, small.axes, seed), kind),
        subject={"definition": "blake3:00"},
        digest=lambda value: canonical.digest(canonical.dumps(value)),
        analysed=converted(whole),
        seeds=seeds,
        kinds=kinds,
    )
    assert statement["predicate"]["verdict"] == "passed"


def test_there_is_a_corpus() -> None:
    assert len(FOLDERS) >= 15


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_first_workload(folder: Path) -> None:
    attested(*next(instances(folder)), seeds=SEEDS[:1], kinds=KINDS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_workload(folder: Path) -> None:
    for whole, small in instances(folder):
        attested(whole, small, SEEDS, KINDS)
