"""The AMD_AKA corpus against figures computed elsewhere: aka_workloads.csv holds the published workloads, and the bytes
and multiply-adds that an independent computation gave for them."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from solar import hardware
from solar.analysis import analyze
from solbench.bounds import solar_inputs, structures
from solbench.corpus.load import Problem, load_corpus
from solbench.corpus.reference import load_reference
from solbench.model.definition import storage_bytes

ROOT = Path(__file__).parents[3] / "problems"
FIXTURE = Path(__file__).parent / "aka_workloads.csv"
REVISION = "869228138e07e773b61dd7fc1d8cdc0435c7b405"


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {p.definition.name: p for p in load_corpus(ROOT) if p.corpus == "AMD_AKA"}


@pytest.fixture(scope="module")
def published() -> dict[str, dict[str, str]]:
    with FIXTURE.open(encoding="utf-8", newline="") as file:
        return {row["workload"]: row for row in csv.DictReader(file)}


def test_counts(problems: dict[str, Problem]) -> None:
    assert len(problems) == 45 and sum(len(p.workloads) for p in problems.values()) == 169
    scored = [p for p in problems.values() if p.definition.role == "scored"]
    assert len(scored) == 43 and sum(len(p.workloads) for p in scored) == 163
    apart = {p.definition.name: p.definition.role for p in problems.values() if p.definition.role != "scored"}
    assert apart == {"fp8_cast_sentinel": "sentinel", "l2n55_matmul_maxpool_sum_scale": "apart"}
    suites = Counter(p.definition.suite for p in problems.values())
    assert suites == {"torch2hip": 37, "torch2flydsl": 6, "instruction2triton": 2}


def test_every_workload_is_there_with_its_axes(
    problems: dict[str, Problem], published: dict[str, dict[str, str]]
) -> None:
    found = {
        workload.uuid: (name, " ".join(f"{axis}={size}" for axis, size in sorted(workload.axes.items())))
        for name, problem in problems.items()
        for workload in problem.workloads
    }
    assert found == {uuid: (row["problem"], row["axes"]) for uuid, row in published.items()}


def test_op_types_and_dtypes(problems: dict[str, Problem], published: dict[str, dict[str, str]]) -> None:
    def signature(problem: Problem, scalars: bool) -> str:
        """Dtypes of the inputs -> outputs."""
        groups = (problem.definition.inputs, problem.definition.outputs)
        named = [{spec.dtype for spec in group.values() if scalars or spec.shape is not None} for group in groups]
        return "->".join("+".join(sorted(names)) for names in named)

    for row in published.values():
        problem = problems[row["problem"]]
        assert problem.definition.op_type == row["op_type"]
        # Published scalars are float32 where ours are integers, so a signature counts them or leaves them out.
        assert row["dtypes"] in {signature(problem, True), signature(problem, False)}, row["problem"]


def test_bytes(problems: dict[str, Problem], published: dict[str, dict[str, str]]) -> None:
    for problem in problems.values():
        for workload in problem.workloads:
            axes = problem.definition.resolve_axes(workload.axes, workload.uuid)
            groups = (problem.definition.inputs, problem.definition.outputs)
            found = [sum(storage_bytes(spec, axes) for spec in group.values()) for group in groups]
            row = published[workload.uuid]
            assert found == [int(row["input_bytes"]), int(row["output_bytes"])], workload.uuid


def test_costs(problems: dict[str, Problem], published: dict[str, dict[str, str]]) -> None:
    """The analysis of every workload at its own size: multiply-adds as written, bytes that have to move."""
    machine = hardware.load("gfx1200")
    for problem in problems.values():
        definition = problem.definition
        for workload in problem.workloads:
            found = analyze(
                load_reference(definition),
                solar_inputs(definition, workload, definition.resolve_axes(workload.axes, workload.uuid)),
                machine,
                outputs=list(definition.outputs),
                in_place=definition.in_place,
                structures=structures(workload),
                rejected_formats=workload.rejected_formats,
            ).bound
            row = published[workload.uuid]
            assert found["dense_macs"] == int(row["macs"]), workload.uuid
            assert found["memory"]["live_bytes"] == int(row["must_move_bytes"]), workload.uuid


def test_source_and_form(problems: dict[str, Problem]) -> None:
    for problem in problems.values():
        definition = problem.definition
        assert definition.source is not None and definition.description
        assert (definition.source.project, definition.source.revision) == ("AgentKernelArena", REVISION)
        assert definition.source.task.startswith(f"tasks/{definition.suite}/")
        assert not definition.destination_passing_style
        assert all(spec.role for spec in definition.inputs.values())


def test_every_input_of_the_reference_is_plain(problems: dict[str, Problem]) -> None:
    """No generator leaves the draw open, and what decides work is frozen."""
    for problem in problems.values():
        for workload in problem.workloads:
            kinds = {generator.type for generator in workload.inputs.values()}
            assert not kinds & {"random", "custom", "safetensors"}
            if problem.definition.op_type == "position_encoding":
                assert workload.inputs["cu_seqlens"].type == "values"
