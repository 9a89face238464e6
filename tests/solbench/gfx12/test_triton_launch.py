"""Triton's launcher for the emulated card: arguments, storages, devices, the autotuner, and what is left as it was."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources

from solbench.errors import InputError, UndecidedError, UnsupportedError
from solbench.gfx12 import launches as launches_module
from solbench.gfx12.run import Options, Outcome
from solbench.gfx12.triton_launch import launching


@triton.jit
def _scaled(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * factor, at < n)


@triton.jit
def _optional(x, bias, y, parts, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    if bias is not None:
        v += tl.load(bias + at)
    tl.store(y + at, v * parts[0] + parts[1])


@triton.jit
def _large(x, y, N: tl.constexpr, M: tl.constexpr):
    """Holds N x M values in LDS to turn them round."""
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    v = tl.load(x + at)
    tl.store(y + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.trans(v))


_configs = [triton.Config({"BLOCK": block}, num_warps=1) for block in (32, 64, 128)]


@triton.autotune(_configs, key=["n"])
@triton.jit
def _tuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) + BLOCK, at < n)


@triton.autotune(_configs, key=["n"], reset_to_zero=["y"], restore_value=["x"])
@triton.jit
def _adds_up(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    tl.store(y + at, tl.load(y + at, at < n) + v, at < n)
    tl.store(x + at, v + 1, at < n)


@triton.autotune([triton.Config({"N": 256}), triton.Config({"N": 64})], key=[])
@triton.jit
def _first_is_too_large(x, y, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(y + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.trans(tl.load(x + at)))


def scaled(x: torch.Tensor, y: torch.Tensor, factor: Any = 2.0) -> None:
    _scaled[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), factor, 64)


def test_every_launch_sees_and_leaves_the_real_bytes() -> None:
    x, y = torch.arange(100).float(), torch.zeros(100)
    with launching() as launches:
        scaled(x, y)
        x += 1
        scaled(y, x)
    assert torch.equal(y, torch.arange(100).float() * 2) and torch.equal(x, torch.arange(100).float() * 4)
    assert [(run.kernel, run.grid, run.block, run.config) for run in launches.runs] == [
        ("_scaled", (2, 1, 1), (128, 1, 1), None)] * 2  # fmt: skip


def test_views_share_the_bytes_of_their_storage() -> None:
    memory = torch.zeros(300)
    memory[:100] = torch.arange(100)
    with launching() as launches:
        scaled(memory[:100], memory[150:250])
    assert torch.equal(memory[150:250], torch.arange(100).float() * 2) and not launches.findings
    assert memory[:100].sum() == 4950 and not memory[100:150].any() and not memory[250:].any()


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(torch.float32, 0.1), (torch.float16, 3.0), (torch.float64, 0.1), (torch.int32, -3), (torch.int64, 2**33 + 1),
     (torch.int32, True), (torch.bfloat16, 1.0)],
)  # fmt: skip
def test_scalars_of_every_type(dtype: torch.dtype, factor: Any) -> None:
    x, y = torch.arange(70).to(dtype), torch.zeros(70, dtype=dtype)
    with launching():
        scaled(x, y, factor)
    exact = float(torch.tensor(factor)) if isinstance(factor, float) else factor
    assert torch.equal(y, (x.to(torch.float64) * exact).to(dtype) if dtype.is_floating_point else x * int(factor))


def test_optional_arguments_and_tuples() -> None:
    x, bias, y = torch.arange(64).float(), torch.full((64,), 5.0), torch.zeros(64)
    with launching():
        _optional[(1,)](x, None, y, (2.0, 7), 64)
        assert torch.equal(y, x * 2 + 7)
        _optional[(1,)](x, bias, y, (3.0, 1), 64)
        assert torch.equal(y, (x + 5) * 3 + 1)


def test_no_groups_are_no_launch_and_empty_tensors_have_no_address() -> None:
    y = torch.zeros(0)
    with launching() as launches:
        scaled(torch.zeros(0), y)
        assert y.data_ptr() == 0
    assert launches.runs == []


def test_a_device_is_the_host() -> None:
    with launching() as launches:
        x = torch.ones(64, device="cuda")
        y = torch.empty_like(x).to("cuda:0").cuda()
        assert x.is_cuda and torch.cuda.is_available() and torch.cuda.get_device_properties(0).warp_size == 32
        assert x.device.type == "cpu"
        scaled(x, y)
        assert torch.equal(y, x * 2)
    assert not x.is_cuda and len(launches.runs) == 1


def test_addresses_are_those_of_the_card() -> None:
    x = torch.zeros(64)
    host = x.data_ptr()
    with launching():
        card = x.data_ptr()
        assert card != host and card % 256 == 0
        assert x[3:].data_ptr() == card + 12
        assert x.view(torch.int16).data_ptr() == card
        scaled(x, torch.zeros(64))
        assert x.data_ptr() == card
    assert x.data_ptr() == host


def test_a_tensor_elsewhere_is_refused() -> None:
    with launching(), pytest.raises(InputError, match="a tensor on meta"):
        scaled(_meta(), torch.zeros(64))


def _meta() -> torch.Tensor:
    """Made below the mode that puts new tensors on the host."""
    with torch._C.DisableTorchFunction():
        return torch.zeros(64, device="meta")


def test_all_is_as_before_afterwards() -> None:
    before = (driver._active, Autotuner.run, torch.cuda.is_available, torch.Tensor.data_ptr)
    with contextlib.suppress(ZeroDivisionError), launching():
        assert torch.Tensor.data_ptr is not before[3]
        1 / 0  # noqa: B018
    assert (driver._active, Autotuner.run, torch.cuda.is_available, torch.Tensor.data_ptr) == before


def test_more_lds_than_there_is_fails_as_on_a_card() -> None:
    with launching() as launches, pytest.raises(OutOfResources, match="shared memory"):
        _large[(1,)](torch.zeros(256, 128), torch.zeros(128, 256), 256, 128)
    assert launches.runs == []


def test_first_configuration_by_default() -> None:
    x, y = torch.zeros(100), torch.zeros(100)
    with launching() as launches:
        _tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)
    assert [run.grid[0] for run in launches.runs] == [4] and y.unique().tolist() == [32]
    assert launches.runs[0].config == str(_configs[0])


def test_a_configuration_by_name_and_each_of_them() -> None:
    x, y = torch.zeros(100), torch.zeros(100)
    with launching(configuration=str(_configs[1])) as launches:
        _tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)
    assert [run.config for run in launches.runs] == [str(_configs[1])] and y.unique().tolist() == [64]
    with launching(configuration="each") as launches:
        _tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)
    assert [run.config for run in launches.runs] == [str(config) for config in _configs]
    assert y.unique().tolist() == [128]
    with launching(configuration="BLOCK: 5"), pytest.raises(InputError, match="no configuration 'BLOCK: 5'"):
        _tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)


def test_what_configurations_change_is_put_back() -> None:
    x, y = torch.arange(100).float(), torch.full((100,), 9.0)
    with launching(configuration="each") as launches:
        _adds_up[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)
    assert len(launches.runs) == 3
    assert torch.equal(y, torch.arange(100).float()) and torch.equal(x, torch.arange(100).float() + 1)


def test_a_configuration_that_needs_too_much_lds_is_passed_over() -> None:
    x, y = torch.randn(64, 128), torch.zeros(128, 64)
    with launching() as launches:
        _first_is_too_large[(1,)](x, y, 128)
    assert [run.config for run in launches.runs] == [str(triton.Config({"N": 64}))]
    assert torch.equal(y, x.t())


def test_limits_and_unknown_instructions_end_the_host_code(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.zeros(64), torch.zeros(64)
    few = Options(max_instructions=3)
    with launching(few) as launches, pytest.raises(UndecidedError, match="limit of instructions"):
        scaled(x, y)
    assert launches.runs[0].outcome.ended == "instructions"

    def unknown(*_: Any) -> Outcome:
        whole = launches.runs[0].outcome
        return Outcome((), ("v_new_f32", 0x1900, "no semantics for it"), None, whole.counts, 0)

    monkeypatch.setattr(launches_module, "run", unknown)
    said = "_scaled: v_new_f32 at 0x1900: no semantics"
    with launching() as then, pytest.raises(UnsupportedError, match=said):
        scaled(x, y)
    assert then.runs[0].outcome.unsupported is not None


def test_launches_inside_launches() -> None:
    x, y = torch.ones(64), torch.zeros(64)
    with launching() as outer:
        with launching() as inner:
            scaled(x, y)
        scaled(y, x)
    assert len(outer.runs) == len(inner.runs) == 1 and x.unique().tolist() == [4]


def test_findings_name_the_parameter_of_the_kernel() -> None:
    x, y = torch.ones(64), torch.zeros(100)
    with launching() as launches:
        _scaled[(2,)](x, y, 100, 2.0, 64)
        _scaled[(2,)](y, x, 100, 2.0, 64)
    assert {(finding.kind, finding.memory) for finding in launches.findings} == {
        ("out-of-bounds load", "x"), ("out-of-bounds store", "y")}  # fmt: skip
    assert {finding.kind for finding in launches.runs[0].outcome.findings} == {"out-of-bounds load"}
