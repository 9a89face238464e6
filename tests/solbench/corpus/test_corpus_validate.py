"""The controls find what is wrong with a problem, and nothing where nothing is."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from solbench.corpus.load import Problem, load_corpus, load_problem
from solbench.corpus.reduce import elements, reduced
from solbench.corpus.reference import load_reference
from solbench.corpus.validate import Finding, validate
from solbench.corpus.variants import FormatEvidence, format_evidence, in_another_order, in_float64, round_to
from solbench.inputs import draw
from solbench.model.definition import Definition
from solbench.model.workload import Workload

MATMUL: dict[str, Any] = {
    "name": "product",
    "axes": {"M": {"type": "var"}, "K": {"type": "var"}},
    "inputs": {"a": {"shape": ["M", "K"], "dtype": "float32"}, "b": {"shape": ["K", "M"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M", "M"], "dtype": "float32"}},
    "reference": "import torch\n\ndef run(a, b):\n    return torch.matmul(a, b)\n",
}
WORKLOAD: dict[str, Any] = {
    "uuid": "w0",
    "axes": {"M": 24, "K": 32},
    "inputs": {"a": {"type": "normal"}, "b": {"type": "normal", "std": "1/sqrt(K)"}},
    "checks": [{"type": "numeric", "output": "y", "atol": 2e-5, "rtol": 2e-5}],
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from threads, and lose much where other work shares the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def problem(definition: dict[str, Any] | None = None, **workload: Any) -> Problem:
    made = Definition.load({**copy.deepcopy(MATMUL), **(definition or {})}, "d")
    one = Workload.load({**copy.deepcopy(WORKLOAD), **workload}, "w")
    one.validate_against(made, "w")
    return Problem(Path("."), "C", made, (one,), ())


def failed(findings: list[Finding]) -> set[str]:
    return {finding.control for finding in findings if not finding.ok}


def test_a_good_problem_has_no_failure_and_every_control() -> None:
    findings = validate(problem(rejected_formats=["float16", "bfloat16"]))
    assert failed(findings) == set()
    assert {finding.control for finding in findings} >= {
        "resolves",
        "reference runs",
        "reference repeats",
        "reference leaves its inputs alone",
        "inputs repeat from their seed",
        "outputs depend on the draw",
        "reference passes its checks",
        "y: zeros must fail",
        "y: the mean must fail",
        "y: a stale output must fail",
        "float64 must pass",
        "another order of summation must pass",
        "rejected format float16",
        "admitted format int8",
    }


def test_a_loose_check() -> None:
    loose = [{"type": "numeric", "output": "y", "atol": 100, "rtol": 0}]
    assert failed(validate(problem(checks=loose))) == {
        f"y: {wrong} must fail" for wrong in ("zeros", "the mean", "a stale output")
    }


def test_a_check_that_only_the_reference_passes() -> None:
    assert failed(validate(problem(checks=[{"type": "exact", "output": "y"}]))) == {
        "float64 must pass",
        "another order of summation must pass",
    }


def test_a_reference_that_raises() -> None:
    (finding,) = [f for f in validate(problem({"reference": "def run(a, b):\n    return a @ a\n"})) if not f.ok]
    assert finding.control == "reference runs" and "shapes" in finding.detail


def test_a_reference_of_another_shape() -> None:
    findings = validate(problem({"reference": "def run(a, b):\n    return (a @ b)[:1].contiguous()\n"}))
    assert "reference passes its checks" in failed(findings)


def test_a_reference_that_writes_its_input() -> None:
    source = "def run(a, b):\n    y = a @ b\n    b.zero_()\n    return y\n"
    assert failed(validate(problem({"reference": source}))) == {"reference leaves its inputs alone"}
    assert failed(validate(problem({"reference": source, "in_place": ["b"]}))) == set()


def test_a_reference_with_a_memory() -> None:
    source = "import torch\n\ndef run(a, b):\n    return a @ b + torch.rand(())\n"
    assert "reference repeats" in failed(validate(problem({"reference": source})))


def test_an_output_that_ignores_its_inputs() -> None:
    source = "import torch\n\ndef run(a, b):\n    return torch.arange(576.0).reshape(24, 24)\n"
    assert failed(validate(problem({"reference": source}))) == {"outputs depend on the draw"}


def test_an_output_that_is_its_input() -> None:
    source = "def run(a, b):\n    return a\n"
    definition = {"reference": source, "outputs": {"y": {"shape": ["M", "K"], "dtype": "float32"}}}
    assert "y: a copy of a must fail" not in {finding.control for finding in validate(problem(definition))}
    doubled = {**definition, "reference": "def run(a, b):\n    return a * 1.00001\n"}
    assert "y: a copy of a must fail" in failed(validate(problem(doubled)))


def test_a_stress_round_that_overflows() -> None:
    stress = [{"label": "far", "inputs": {"a": {"type": "normal", "std": 1e30}, "b": {"type": "normal", "std": 1e30}}}]
    assert failed(validate(problem(stress_rounds=stress))) == {"stress round: far"}


def test_a_format_wrongly_rejected() -> None:
    loose = [{"type": "numeric", "output": "y", "atol": 0.01, "rtol": 0.01}]
    findings = validate(problem(checks=loose, rejected_formats=["float16", "float8_e5m2", "float64"]))
    assert failed(findings) == {"rejected format float16", "rejected format float64"}


def test_no_contraction_rejects_no_format() -> None:
    source = "def run(a, b):\n    return (a * b.T).sum(1, keepdim=True) + b[:1]\n"
    findings = validate(problem({"reference": source}, rejected_formats=["int8"]))
    assert failed(findings) == {"rejected format int8"}


def test_every_contraction_must_reject_a_format() -> None:
    """Here the first product may be rounded (its share of y is tiny), so the format is admitted."""
    source = "def run(a, b):\n    return 1e-6 * (a @ b) + a @ (2 * b)\n"
    evidence = {entry.format: entry for entry in format_evidence(reduced_of(problem({"reference": source})))}
    assert not evidence["float16"].rejects
    alone = {entry.format: entry for entry in format_evidence(reduced_of(problem()))}
    assert alone["float16"].rejects


def reduced_of(made: Problem) -> Any:
    return reduced(made.definition, made.workloads[0])


def test_evidence_needs_every_seed_and_a_margin() -> None:
    assert FormatEvidence("int8", (0.5, 0.002, 0.9)).rejects
    assert not FormatEvidence("int8", (0.5, 0.0009, 0.9)).rejects
    assert not FormatEvidence("int8", ()).rejects


@pytest.mark.parametrize(
    ("name", "step"), [("bfloat16", 2.0**-8), ("float16", 2.0**-11), ("float8_e4m3fn", 2.0**-4), ("float8_e5m2", 0.125)]
)
def test_rounding_error_of_a_format(name: str, step: float) -> None:
    value = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    error = ((round_to(value, name) - value) / value)[value.abs() > 0.1].abs().max().item()
    assert step / 2 < error <= step * 1.0001


def test_int8_rows_are_scaled() -> None:
    value = torch.tensor([[127.0, 63.4, 0.4], [1.27, 0.634, 0.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[127.0, 63.0, 0.0], [1.27, 0.63, 0.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(round_to(value, "int8"), expected)


def test_float64_variant_is_more_exact() -> None:
    instance = reduced_of(problem())
    generator = torch.Generator().manual_seed(1)
    inputs: Any = {"a": torch.randn(24, 32, generator=generator), "b": torch.randn(32, 24, generator=generator)}
    exact = inputs["a"].double() @ inputs["b"].double()
    assert torch.equal(in_float64(instance, inputs)["y"], exact.float())


@pytest.mark.parametrize(
    "source",
    [
        "torch.matmul(a, b)",
        "torch.bmm(a[None], b[None])[0]",
        "torch.addmm(torch.ones(24), a, b)",
        "(a[:, :, None] * b[None]).sum(1)",
        "(a[:, :, None] * b[None]).mean(1)",
        "torch.conv1d(a.T[None], b.T[:, :, None], torch.ones(24))[0]",
    ],
)
def test_another_order_differs_in_the_last_bits_only(source: str) -> None:
    instance = reduced_of(problem({"reference": f"import torch\n\ndef run(a, b):\n    return {source}\n"}))
    inputs = draw(instance.definition, instance.workload, instance.axes, 1)
    plain = load_reference(instance.definition)(**inputs)
    other = in_another_order(instance, inputs)["y"]
    assert not torch.equal(plain, other)
    assert torch.allclose(plain, other, rtol=1e-5, atol=1e-5)


def test_small_workloads_stay() -> None:
    instance = reduced_of(problem())
    assert instance.note is None and instance.axes == {"M": 24, "K": 32}


def test_large_workloads_shrink() -> None:
    made = problem(axes={"M": 3000, "K": 4096})
    instance = reduced(made.definition, made.workloads[0], limit=10_000)
    assert elements(instance.definition, instance.axes) <= 10_000
    assert instance.axes["K"] % 32 == 0 and instance.axes["M"] % 2 == 0
    assert instance.note is not None and "K 4096 -> " in instance.note


def test_what_a_workload_fixes_stays() -> None:
    definition = {
        "axes": {"T": {"type": "var"}, "S": {"type": "var"}, "H": {"type": "var"}, "K": {"type": "var"}},
        "inputs": {
            "x": {"shape": ["T", "H"], "dtype": "float32"},
            "offsets": {"shape": ["S"], "dtype": "int32"},
            "topk": {"shape": None, "dtype": "int32"},
        },
        "outputs": {"y": {"shape": ["T", "K"], "dtype": "float32"}},
        "reference": "def run(x, offsets, topk):\n    return x\n",
    }
    made = problem(
        definition,
        axes={"T": 1024, "S": 3, "H": 4096, "K": 64},
        inputs={
            "x": {"type": "normal"},
            "offsets": {"type": "values", "values": [0, 500, 1024]},
            "topk": {"type": "constant", "value": 64},
        },
    )
    instance = reduced(made.definition, made.workloads[0], limit=1000)
    assert instance.axes == {"T": 1024, "S": 3, "H": 8, "K": 64}
    # An axis that an expression divides keeps its multiples of 32.
    definition["axes"]["G"] = {"type": "expr", "expression": "H // 32"}
    made = problem(definition, axes=dict(made.workloads[0].axes), inputs=made.workloads[0].as_dict()["inputs"])
    assert reduced(made.definition, made.workloads[0], limit=1000).axes["H"] == 32


ROOT = Path(__file__).parents[3] / "problems"


@pytest.mark.parametrize(
    "name", ["torch2hip/l1n23_softmax", "torch2flydsl/moe_topk_softmax", "torch2hip/l1n2_standard_matmul"]
)
def test_controls_of_a_published_problem(name: str) -> None:
    findings = validate(load_problem(ROOT / "AMD_AKA" / name))
    assert len(findings) > 40 and [finding for finding in findings if not finding.ok] == []


@pytest.mark.slow
def test_controls_of_every_published_problem() -> None:
    findings = [finding for published in load_corpus(ROOT) for finding in validate(published)]
    assert [finding for finding in findings if not finding.ok] == []


def test_a_variant_that_cannot_run_is_no_pass() -> None:
    reference = (
        "def run(a, b):\n    if a.element_size() == 8:\n        raise RuntimeError('float32 only')\n    return a @ b\n"
    )
    (finding,) = [finding for finding in validate(problem({"reference": reference})) if not finding.ok]
    assert (finding.control, finding.ok) == ("float64 must pass", None)
    assert finding.detail == "RuntimeError: float32 only"
