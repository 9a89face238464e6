"""A mistake that ordinary draws hide shows in a stress round: an exponential that overflows, a scale of zero."""

from typing import Any

import pytest
import torch
from llm_core_smoke import TEMPLATES, Smoke, smoke

from solbench.corpus.reduce import Instance
from solbench.corpus.reference import load_reference, named_outputs
from solbench.corpus.variants import TakenApart, run_under
from solbench.inputs import draw

aten = torch.ops.aten

AXES: dict[str, dict[str, int]] = {
    "attention_gqa_causal": {"B": 1, "HQ": 4, "HK": 1, "S": 9, "T": 19, "D": 32},
    "attention_masked_softmax": {"B": 1, "HQ": 4, "HK": 1, "S": 9, "T": 19, "D": 32, "BK": 8, "TB": 4},
    "attention_attention_sink": {"B": 1, "HQ": 4, "HK": 1, "S": 9, "T": 19, "D": 32},
    "attention_mqa_decode": {"B": 2, "HQ": 4, "T": 33, "D": 32},
    "attention_sliding_window": {"B": 1, "HQ": 4, "HK": 1, "S": 9, "T": 99, "D": 32, "W": 64},
    "advanced_attention_indexed_sparse": {"B": 1, "HQ": 4, "S": 9, "T": 33, "DQ": 48, "DV": 32, "K": 32},
    "advanced_attention_mla_compressed": {"B": 1, "HQ": 4, "S": 9, "T": 19, "DN": 32, "DR": 16, "DC": 64, "DV": 32},
    "kv_cache_cache_compress": {"B": 1, "T": 33, "D": 32, "m": 4},
    "linear_matmul_gelu": {"M": 33, "K": 64, "N": 96},
    "linear_matmul_silu": {"M": 33, "K": 64, "N": 96},
    "linear_grouped_silu": {"R": 33, "G": 4, "K": 64, "N": 32},
    "norm_activation_bias_gelu": {"M": 33, "N": 96},
    "norm_activation_swiglu": {"M": 33, "N": 96},
    "quantization_fp8_per_token": {"M": 33, "K": 64, "N": 96},
    "quantization_mxfp8_block": {"M": 33, "N": 96},
    "quantization_mxfp4_block": {"M": 33, "N": 96},
}


class _Careless(TakenApart):
    """No maximum under an exponential, exponentials of positive arguments, a logarithm of nothing."""

    def step(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in (aten.amax.default, aten.maximum.default) and args[0].is_floating_point():
            return torch.zeros_like(func(*args, **kwargs))
        if func is aten.silu.default:
            return args[0] * args[0].exp() / (1 + args[0].exp())
        if func is aten.gelu.default:
            twice = (2 * (2 / torch.pi) ** 0.5 * (args[0] + 0.044715 * args[0] ** 3)).exp()
            return 0.5 * args[0] * (1 + (twice - 1) / (twice + 1))
        return func(*args, **kwargs)


class _NoLeastScale(TakenApart):
    """A scale that may be zero."""

    def step(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.clamp.default and args[1] == 1e-12:
            return args[0]
        return func(*args, **kwargs)


def stressed(name: str) -> tuple[Smoke, Smoke]:
    """The smoke workload in an ordinary draw and in its stress round."""
    plain = smoke(name, **AXES[name])
    (stress,) = plain.workload.stress_rounds
    definition = TEMPLATES[name].definition
    inputs = draw(definition, plain.workload, plain.axes, 1, stress=stress)
    expected = named_outputs(definition, load_reference(definition)(*inputs.values()))
    return plain, Smoke(plain.template, plain.workload, plain.axes, inputs, expected)


def reason(drawn: Smoke, mode: TakenApart) -> str | None:
    instance = Instance(drawn.template.definition, drawn.workload, dict(drawn.axes))
    return drawn.verdict(run_under(mode, instance, drawn.inputs))


EXPONENTIALS = [name for name in AXES if not name.startswith("quantization")]


@pytest.mark.parametrize("name", EXPONENTIALS)
def test_an_exponential_that_overflows(name: str) -> None:
    plain, stress = stressed(name)
    assert reason(plain, _Careless()) is None
    assert "NaN" in str(reason(stress, _Careless()))
    assert stress.verdict(stress.expected) is None


def test_a_row_of_zeros_has_no_scale() -> None:
    plain, stress = stressed("quantization_fp8_per_token")
    assert reason(plain, _NoLeastScale()) is None
    assert "NaN" in str(reason(stress, _NoLeastScale()))


@pytest.mark.parametrize("name", ["quantization_mxfp8_block", "quantization_mxfp4_block"])
def test_blocks_of_every_size(name: str) -> None:
    """Scale bytes from 2^-100 to 2^100 and a block of zeros, whose byte is 0 and whose codes are zeros."""
    _, stress = stressed(name)
    scales, codes = stress.expected["scales"], stress.expected["codes"]
    blocks = stress.inputs["x"].double().unflatten(1, (-1, 32)).abs().amax(2)
    emax = 8 if "mxfp8" in name else 2
    assert torch.equal(scales[blocks > 0].double(), blocks[blocks > 0].log2().floor() - emax + 127)
    assert scales.max() - scales[blocks > 0].min() > 150 and (blocks == 0).sum() == 1
    assert scales[blocks == 0].tolist() == [0] and not codes[-1, -16:].view(torch.uint8).any()


def test_every_stress_round_is_tested() -> None:
    assert {name for name, template in TEMPLATES.items() if "stress_rounds" in template.shared} == set(AXES)
