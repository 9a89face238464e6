"""The controls find what is wrong with a problem, and nothing where nothing is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from product_problem import computing, failed, problem, reduced_of, states

from solbench.corpus.load import load_corpus, load_problem
from solbench.corpus.reduce import elements, reduced
from solbench.corpus.validate import validate
from solbench.corpus.variants import RIGHT

ROOT = Path(__file__).parents[3] / "problems"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from threads, and lose much where other work shares the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_a_good_problem_has_no_failure_and_every_control() -> None:
    findings = validate(problem(rejected_formats=["float16", "bfloat16"]))
    assert failed(findings) == set()
    assert {finding.control for finding in findings if finding.state == "holds"} >= {
        "resolves",
        "reference runs",
        "reference repeats",
        "reference leaves its inputs alone",
        "inputs repeat from their seed",
        "no input is all zeros",
        "outputs depend on the draw",
        "the reference reads a",
        "the reference reads b",
        "reference passes its checks",
        "y: zeros must fail",
        "y: the mean must fail",
        "y: a stale output must fail",
        "y: half the rows must fail",
        "y: transposed must fail",
        "y: low-precision accumulation must fail",
        "float64 must pass",
        "another order of summation must pass",
        "a fused kernel's arithmetic must pass",
        "rejected format float16",
        "admitted format int8",
    }


def test_a_loose_check() -> None:
    loose = [{"type": "numeric", "output": "y", "atol": 100, "rtol": 0}]
    wrong = ("zeros", "the mean", "a stale output", "half the rows", "transposed", "low-precision accumulation")
    assert failed(validate(problem(checks=loose))) == {f"y: {control} must fail" for control in wrong}


def test_a_check_of_a_few_bits_admits_sums_in_bfloat16() -> None:
    coarse = [{"type": "numeric", "output": "y", "atol": 0.05, "rtol": 0}]
    (finding,) = [f for f in validate(problem(checks=coarse)) if "accumulation" in f.control]
    assert (finding.state, finding.detail) == ("holds", "in float8_e5m2")
    (finding,) = [f for f in validate(problem()) if "accumulation" in f.control]
    assert (finding.state, finding.detail) == ("holds", "in bfloat16")


def test_an_output_of_short_sums_has_no_accumulation_to_get_wrong() -> None:
    (finding,) = [f for f in validate(problem(axes={"M": 24, "K": 15})) if "accumulation" in f.control]
    assert (finding.state, finding.detail) == ("not applicable", "no sum of 16 terms and more leads to it")
    (finding,) = [f for f in validate(problem(axes={"M": 24, "K": 16})) if "accumulation" in f.control]
    assert finding.state == "holds"


def test_a_check_that_only_the_reference_passes() -> None:
    # Eleven terms: the halves of another order have other roundings, and so has a double.
    assert failed(validate(problem(checks=[{"type": "exact", "output": "y"}]))) == {
        "float64 must pass",
        "another order of summation must pass",
    }


def test_a_check_that_no_fused_kernel_passes() -> None:
    made = computing("(a @ b).bfloat16().float() * 3")
    assert "a fused kernel's arithmetic must pass" in failed(validate(made))


def test_a_reference_that_raises() -> None:
    findings = validate(computing("a @ a"))
    (finding,) = [finding for finding in findings if finding.state == "failed"]
    assert finding.control == "reference runs" and "shapes" in finding.detail


def test_a_reference_of_another_shape() -> None:
    assert "reference passes its checks" in failed(validate(computing("(a @ b)[:1].contiguous()")))


def test_a_reference_that_writes_its_input() -> None:
    source = "def run(a, b):\n    y = a @ b\n    b.zero_()\n    return y\n"
    assert failed(validate(problem({"reference": source}))) == {"reference leaves its inputs alone"}
    assert failed(validate(problem({"reference": source, "in_place": ["b"]}))) == set()


def test_a_reference_with_a_memory() -> None:
    assert "reference repeats" in failed(validate(computing("a @ b + torch.rand(())")))


def test_an_output_that_is_the_same_for_every_seed() -> None:
    assert failed(validate(computing("torch.arange(576.0).reshape(24, 24)"))) == {
        "outputs depend on the draw",
        "the reference reads a",
        "the reference reads b",
    }


def test_an_input_that_is_ignored() -> None:
    assert failed(validate(computing("a @ a.T"))) == {"the reference reads b"}


def test_a_constant_input_is_changed_in_one_element() -> None:
    ones = {"a": {"type": "normal"}, "b": {"type": "constant", "value": 1}}
    assert "the reference reads b" not in failed(validate(problem(inputs=ones)))
    made = problem({"reference": "def run(a, b):\n    return a @ a.T\n"}, inputs=ones)
    assert "the reference reads b" in failed(validate(made))


def test_an_input_of_which_no_other_value_runs() -> None:
    source = "def run(a, b):\n    if not (b == 1).all():\n        raise ValueError('ones only')\n    return a @ b\n"
    ones = {"a": {"type": "normal"}, "b": {"type": "constant", "value": 1}}
    found = states(validate(problem({"reference": source}, inputs=ones)))
    assert (found["the reference reads a"], found["the reference reads b"]) == ("holds", "not run")


def test_weights_of_zeros() -> None:
    zeros = {"a": {"type": "normal"}, "b": {"type": "constant", "value": 0}}
    # The reference reads them, but all its outputs are zeros.
    found = states(validate(problem(inputs=zeros)))
    assert found["no input is all zeros"] == "failed"
    assert found["y: zeros must fail"] == "not applicable"  # they are right
    bias = {"inputs": {"a": {"shape": ["M", "K"], "dtype": "float32"}, "b": {"shape": ["M"], "dtype": "float32"}}}
    source = "def run(a, b):\n    return a @ a.T + b\n"
    made = problem({**bias, "reference": source}, inputs=zeros)
    assert states(validate(made))["no input is all zeros"] == "failed"
    bias["inputs"]["b"]["role"] = "bias"
    made = problem({**bias, "reference": source}, inputs=zeros)
    assert states(validate(made))["no input is all zeros"] == "holds"


def test_zeros_that_pass() -> None:
    tiny = {"a": {"type": "normal", "std": 1e-4}, "b": {"type": "normal", "std": 1e-4}}
    assert "y: zeros must fail" in failed(validate(problem(inputs=tiny)))


def test_an_output_that_is_its_input() -> None:
    source = "def run(a, b):\n    return a\n"
    definition = {"reference": source, "outputs": {"y": {"shape": ["M", "K"], "dtype": "float32"}}}
    assert states(validate(problem(definition)))["y: a copy of a must fail"] == "not applicable"
    doubled = {**definition, "reference": "def run(a, b):\n    return a * 1.00001\n"}
    assert "y: a copy of a must fail" in failed(validate(problem(doubled)))


def test_a_stress_round_that_overflows() -> None:
    stress = [{"label": "far", "inputs": {"a": {"type": "normal", "std": 1e30}, "b": {"type": "normal", "std": 1e30}}}]
    assert failed(validate(problem(stress_rounds=stress))) == {"stress round: far"}


def test_a_stress_round_that_only_the_reference_passes() -> None:
    one_pass = "(a @ b) * (a.square().mean(1, keepdim=True) - a.mean(1, keepdim=True).square())"
    stress = [{"label": "large mean", "inputs": {"a": {"type": "normal", "mean": 300}}}]
    made = problem({"reference": f"def run(a, b):\n    return {one_pass}\n"}, stress_rounds=stress)
    assert (
        {"float64 must pass, large mean"}
        <= failed(validate(made))
        <= {f"{variant} must pass, large mean" for variant in RIGHT}
    )


def test_a_format_wrongly_rejected() -> None:
    loose = [{"type": "numeric", "output": "y", "atol": 0.01, "rtol": 0.01}]
    findings = validate(problem(checks=loose, rejected_formats=["float16", "float8_e5m2", "float64"]))
    assert failed(findings) == {"rejected format float16", "rejected format float64"}


def test_no_contraction_rejects_no_format() -> None:
    source = "def run(a, b):\n    return (a * b.T).sum(1, keepdim=True) + b[:1]\n"
    findings = validate(problem({"reference": source}, rejected_formats=["int8"]))
    assert failed(findings) == {"rejected format int8"}


def test_a_variant_that_cannot_run_is_no_pass() -> None:
    reference = (
        "def run(a, b):\n    if a.element_size() == 8:\n        raise RuntimeError('float32 only')\n    return a @ b\n"
    )
    findings = validate(problem({"reference": reference}))
    assert failed(findings) == {"float64 must pass"}
    (finding,) = [finding for finding in findings if finding.state == "not run"]
    assert (finding.control, finding.detail) == ("float64 must pass", "RuntimeError: float32 only")


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


@pytest.mark.parametrize(
    "name", ["torch2hip/l1n23_softmax", "torch2flydsl/moe_topk_softmax", "torch2hip/l1n2_standard_matmul"]
)
def test_controls_of_a_published_problem(name: str) -> None:
    findings = validate(load_problem(ROOT / "AMD_AKA" / name))
    assert len(findings) > 60 and failed(findings) == set()


@pytest.mark.slow
def test_controls_of_every_published_problem() -> None:
    findings = [finding for published in load_corpus(ROOT) for finding in validate(published)]
    assert len(findings) > 3000 and failed(findings) == set()
