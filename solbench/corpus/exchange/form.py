"""What distinguishes the formats of this family: one value object each, read by both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solbench.model.definition import DTYPE_BITS

# PyTorch has no unpacked four-bit dtype, so nothing of one can be drawn, stored or compared.
NOT_HERE = {"float4_e2m1": "PyTorch has no such dtype"}


@dataclass(frozen=True)
class Form:
    """``languages``: theirs -> ours, for those that fit. ``tolerance``: their default, for every output alike.

    ``op_type``, ``expressions``, ``custom``: whether an operation's kind must be named, axes may be computed, inputs
    may come from a function. ``workload_tolerance``: whether a workload states its tolerance.
    """

    name: str
    dtypes: frozenset[str]
    languages: Mapping[str, str]
    tolerance: Mapping[str, Any]
    expressions: bool
    custom: bool
    workload_tolerance: bool
    definition_fields: tuple[str, ...]


_TOLERANCE = {
    "max_atol": 1e-2, "max_rtol": 1e-2, "required_matched_ratio": 0.99, "max_error_cap": None,
    "allow_negative_inf": False,
}  # fmt: skip
_COMMON = ("name", "op_type", "axes", "inputs", "outputs", "reference", "description")

SOL_EXECBENCH = Form(
    name="sol-execbench",
    dtypes=frozenset(DTYPE_BITS) - {"uint8"},
    # Their older solutions say python and cuda; an export says the later name of each.
    languages={
        "python": "pytorch",
        "cuda": "cuda_cpp",
        "pytorch": "pytorch",
        "triton": "triton",
        "cuda_cpp": "cuda_cpp",
    },
    tolerance=_TOLERANCE,
    expressions=True,
    custom=True,
    workload_tolerance=True,
    definition_fields=(*_COMMON, "hf_id", "custom_inputs_entrypoint"),
)
FLASHINFER_TRACE = Form(
    name="flashinfer-trace",
    dtypes=frozenset(DTYPE_BITS) - {"uint8", "float64", "float4_e2m1fn_x2"},
    languages={"python": "pytorch", "triton": "triton", "cuda": "cuda_cpp", "cpp": "cpp"},
    tolerance={**_TOLERANCE, "required_matched_ratio": 1.0},
    expressions=False,
    custom=False,
    workload_tolerance=False,
    definition_fields=_COMMON,
)
