import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from solbench.errors import InputError, UnsupportedError
from solbench.inputs import draw
from solbench.model.definition import Definition
from solbench.model.workload import Workload


def make(
    generator: dict[str, Any],
    shape: list[Any] | None,
    dtype: str = "float32",
    axes: dict[str, int] | None = None,
    stress: dict[str, Any] | None = None,
    reference: str = "def run(x):\n    pass\n",
    **more: Any,
) -> tuple[Definition, Workload, dict[str, int]]:
    """A problem with the one input ``x``, its workload and the resolved axes."""
    axes = axes or {}
    fields = {
        "name": "one",
        "axes": {name: {"type": "var"} for name in axes},
        "inputs": {"x": {"shape": shape, "dtype": dtype}},
        "outputs": {"y": {"shape": [1], "dtype": "float32"}},
        "reference": reference,
        **more,
    }
    definition = Definition.load(fields, "d")
    workload = Workload.load(
        {
            "uuid": "w",
            "axes": axes,
            "inputs": {"x": generator},
            "checks": [{"type": "exact", "output": "y"}],
            "stress_rounds": [{"label": "other", "inputs": {"x": stress}}] if stress else [],
        },
        "w",
    )
    return definition, workload, workload.validate_against(definition, "w")


def x(generator: dict[str, Any], shape: list[Any] | None, dtype: str = "float32", seed: int = 1, **more: Any) -> Any:
    return draw(*make(generator, shape, dtype, **more), seed)["x"]


def test_a_seed_repeats_and_seeds_differ() -> None:
    first, again, other = (x({"type": "normal"}, [64], seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_large_seeds_count_whole() -> None:
    assert not torch.equal(x({"type": "normal"}, [8], seed=5), x({"type": "normal"}, [8], seed=5 + 2**64))


def test_inputs_are_independent_of_each_other() -> None:
    fields: dict[str, Any] = {
        "name": "two",
        "axes": {},
        "inputs": {"x": {"shape": [32], "dtype": "float32"}, "z": {"shape": [32], "dtype": "float32"}},
        "outputs": {"y": {"shape": [1], "dtype": "float32"}},
        "reference": "def run(x, z):\n    pass\n",
    }
    definition = Definition.load(fields, "d")
    spec = {"uuid": "w", "axes": {}, "checks": [{"type": "exact", "output": "y"}]}
    normal, uniform = {"type": "normal"}, {"type": "uniform"}
    both = draw(definition, Workload.load({**spec, "inputs": {"x": normal, "z": normal}}, "w"), {}, 1)
    mixed = draw(definition, Workload.load({**spec, "inputs": {"x": uniform, "z": normal}}, "w"), {}, 1)
    renamed = draw(definition, Workload.load({**spec, "uuid": "v", "inputs": {"x": normal, "z": normal}}, "w"), {}, 1)
    assert list(both) == ["x", "z"]
    assert not torch.equal(both["x"], both["z"])
    assert torch.equal(both["z"], mixed["z"])
    assert not torch.equal(both["x"], renamed["x"])


def test_stress_round_replaces_what_it_names() -> None:
    definition, workload, axes = make({"type": "normal"}, [16], stress={"type": "constant", "value": 3.0})
    (stress,) = workload.stress_rounds
    assert draw(definition, workload, axes, 1, stress=stress)["x"].tolist() == [3.0] * 16


def test_global_random_state_is_untouched() -> None:
    before = torch.random.get_rng_state()
    x({"type": "normal"}, [16])
    assert torch.equal(before, torch.random.get_rng_state())


def test_normal() -> None:
    value = x({"type": "normal", "mean": 3, "std": "1/sqrt(K)"}, ["K", 1000], axes={"K": 16})
    assert value.dtype == torch.float32 and value.is_contiguous()
    assert value.mean().item() == pytest.approx(3, abs=0.01) and value.std().item() == pytest.approx(0.25, abs=0.01)


def test_uniform() -> None:
    value = x({"type": "uniform", "low": -2, "high": 6}, [4000])
    assert -2 <= value.min() < -1.9 and 5.9 < value.max() < 6


def test_integer_and_bernoulli() -> None:
    value = x({"type": "integer", "low": 2, "high": "K"}, [4000], "int64", axes={"K": 5})
    assert value.dtype == torch.int64 and value.unique().tolist() == [2, 3, 4]
    coin = x({"type": "bernoulli", "probability": 0.25}, [4000], "bool")
    assert coin.dtype == torch.bool and coin.float().mean().item() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_floats_are_the_float32_draw_rounded(dtype: str) -> None:
    full, cast = x({"type": "normal"}, [100]), x({"type": "normal"}, [100], dtype)
    assert cast.dtype == getattr(torch, dtype)
    assert torch.equal(cast.double(), full.to(cast.dtype).double())


@pytest.mark.parametrize(
    ("dtype", "value", "expected"), [("float32", 2, 2.0), ("int32", 7, 7), ("bool", True, True), ("float64", 0.5, 0.5)]
)
def test_python_scalars(dtype: str, value: Any, expected: Any) -> None:
    drawn = x({"type": "constant", "value": value}, None, dtype)
    assert drawn == expected and type(drawn) is type(expected)


def test_scalar_must_fit_its_dtype() -> None:
    with pytest.raises(InputError, match=r"one: w: inputs\.x: 2\.5 is not an integer"):
        x({"type": "constant", "value": 2.5}, None, "int32")


def test_simplex() -> None:
    value = x({"type": "simplex", "axis": 1, "temperature": 2}, [3, 5, 4])
    assert torch.allclose(value.sum(1), torch.ones(3, 4)) and value.min() > 0
    holed = x({"type": "simplex", "axis": 1, "zero_first": True}, [3, 5, 4])
    assert torch.allclose(holed.sum(1), torch.ones(3, 4)) and bool((holed[:, 0] == 0).all())
    assert holed[:, 1:].min() > 0


@given(st.integers(0, 30), st.integers(0, 10), st.integers(0, 2**64))
@settings(max_examples=40, deadline=None)
def test_offsets(extra: int, inner: int, seed: int) -> None:
    last = 3 + inner + 1 + extra
    generator = {"type": "offsets", "first": 3, "last": last, "count": "S"}
    value = x(generator, ["S"], "int32", seed=seed, axes={"S": inner + 2}).tolist()
    assert value[0] == 3 and value[-1] == last and len(value) == inner + 2
    assert all(left < right for left, right in itertools.pairwise(value))
    loose = x({**generator, "strictly_increasing": False}, ["S"], "int32", seed=seed, axes={"S": inner + 2}).tolist()
    assert loose[0] == 3 and loose[-1] == last and loose == sorted(loose)


def test_offsets_that_cannot_be() -> None:
    with pytest.raises(InputError, match="there are no 5 such offsets from 0 to 3"):
        x({"type": "offsets", "last": 3, "count": 5}, [5], "int32")


def test_values_are_the_very_numbers() -> None:
    value = x({"type": "values", "values": [1, 2, 3, 4, 5, 6]}, [2, 3], "int32")
    assert value.dtype == torch.int32 and value.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_permuted_rows() -> None:
    value = x({"type": "permuted_rows", "low": -1, "high": 1}, [50, 8])
    grid = torch.arange(8) / 4 - 1
    assert torch.equal(value.sort(1).values, grid.expand(50, 8))
    assert len({tuple(row) for row in value.tolist()}) > 40
    scaled = x({"type": "permuted_rows", "scale_low": 1, "scale_high": 4}, [500, 8])
    scale = -scaled.min(1).values
    assert 1 <= scale.min() < 1.1 and 3.9 < scale.max() <= 4
    assert torch.allclose(scaled.sort(1).values, grid * scale[:, None])


def test_power_rows() -> None:
    value = x({"type": "power_rows", "low": -20, "high": 20, "zero_last": True}, [200, 64])
    exponent = torch.log2(value[:-1].square().mean(1).sqrt())
    assert exponent.min() < -17 and exponent.max() > 17
    assert value[-1].abs().max() == 0
    assert x({"type": "power_rows", "low": 0, "high": 0, "zero_last": True}, [1, 64]).abs().max() > 0
    blocks = x({"type": "power_rows", "low": -4, "high": 4, "block": 32, "peak_first": 1.75}, [2, 64])
    mantissa, _ = math.frexp(blocks[0, :32].abs().max().item())
    assert mantissa == 1.75 / 2
    with pytest.raises(InputError, match="not whole blocks of 32"):
        x({"type": "power_rows", "low": 0, "high": 0, "block": 32}, [2, 40])


def test_rotary_angles() -> None:
    value = x({"type": "rotary_angles"}, [9, 1, 1, 4])
    expected = [[p * 10000 ** (-j / 4) for j in range(4)] for p in range(9)]
    assert torch.allclose(value[:, 0, 0].double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-6)


def test_lower_triangular() -> None:
    value = x({"type": "lower_triangular"}, [1, 2, 3, 3])
    assert value[0, 1].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_unspecified_draws() -> None:
    assert x({"type": "random"}, [500]).std().item() == pytest.approx(1, abs=0.15)
    assert x({"type": "random"}, [50], "int32").unique().tolist() == [0, 1]
    assert x({"type": "random"}, [50], "bool").unique().tolist() == [False, True]


def test_real_numbers_do_not_fit_integers() -> None:
    with pytest.raises(InputError, match="normal draws real numbers, int32 holds none"):
        x({"type": "normal"}, [4], "int32")


def test_no_such_dtype_here() -> None:
    with pytest.raises(UnsupportedError, match="dtype float4_e2m1"):
        x({"type": "random"}, [4], "float4_e2m1")


CUSTOM = """\
import torch

def make(known, device):
    return {"x": torch.randn(known["M"], device=device)}

def run(x):
    pass
"""


def test_custom() -> None:
    options = {"axes": {"M": 5}, "reference": CUSTOM, "custom_inputs_entrypoint": "make"}
    first, again, other = (x({"type": "custom"}, ["M"], seed=seed, **options) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    with pytest.raises(InputError, match=r"is torch\.float32 \[5\], declared is float32 \[\]"):
        x({"type": "custom"}, [], **options)


def test_custom_must_return_the_input() -> None:
    reference = CUSTOM.replace('"x": torch', '"z": torch')
    with pytest.raises(InputError, match="one: make: must return the custom inputs x"):
        x({"type": "custom"}, ["M"], axes={"M": 5}, reference=reference, custom_inputs_entrypoint="make")


def test_safetensors(tmp_path: Path) -> None:
    header = json.dumps({"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    data = torch.tensor([1.5, -2.0]).numpy().tobytes()
    (tmp_path / "data.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    problem = make({"type": "safetensors", "path": "data.safetensors", "tensor_key": "t"}, [2])
    assert draw(*problem, 1, folder=tmp_path)["x"].tolist() == [1.5, -2.0]
    with pytest.raises(InputError, match="no problem folder"):
        draw(*problem, 1)
    for path in ("../data.safetensors", str(tmp_path / "data.safetensors"), "a//b", "missing.safetensors"):
        wrong = make({"type": "safetensors", "path": path, "tensor_key": "t"}, [2])
        with pytest.raises(InputError, match=r"inputs\.x"):
            draw(*wrong, 1, folder=tmp_path / "below" if path.startswith("..") else tmp_path)
    with pytest.raises(InputError, match=r"inputs\.x"):
        draw(*make({"type": "safetensors", "path": "data.safetensors", "tensor_key": "u"}, [2]), 1, folder=tmp_path)
