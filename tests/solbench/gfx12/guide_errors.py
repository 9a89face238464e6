"""Where the table is not what the pseudocode of the ISA guide says, and why; each has a test of its own elsewhere."""

from __future__ import annotations

_FLUSH = "LLVM's AMDGPU backend takes denormal operands and results of it as flushed; the guide's text does not"
_HALF = (
    "adding 0.5 first rounds, so that odd numbers from 2**(fraction bits) on and the number below 0.5 come out wrong"
)
_DOT = "the guide rounds after each product and sum; how often the hardware does is not documented"
_LANES = "reads registers of other lanes"

# Entries of the table that are not compared with the pseudocode.
DIFFERENT: dict[str, str] = {
    **{f"{prefix}{name}_f32": _FLUSH for prefix in ("v_", "v_s_") for name in ("exp", "log", "rcp", "rsq", "sqrt")},
    "v_rcp_iflag_f32": _FLUSH,
    **{f"v_{name}_{kind}": "the guide rounds 2 pi x before the sine" for name in ("sin", "cos") for kind in
       ("f16", "f32")},
    **{f"{prefix}_rndne_{kind}": f"{_HALF}; -0 becomes +0" for prefix in ("s", "v") for kind in ("f16", "f32")},
    "v_rndne_f64": f"{_HALF}; -0 becomes +0",
    "v_cvt_nearest_i32_f32": _HALF,
    **{f"v_fract_{kind}": "the guide gives 1.0 just below zero; LLVM relies on a result below 1" for kind in
       ("f16", "f32", "f64")},
    **{f"v_frexp_{what}_{kind}": "exponent() and mantissa() of zero and denormals are not defined" for what, kind in
       (("exp_i32", "f32"), ("exp_i32", "f64"), ("exp_i16", "f16"), ("mant", "f16"), ("mant", "f32"), ("mant", "f64"))},
    "v_div_scale_f32": "see solbench.gfx12.division: no result where nothing is scaled, DENORM of the wrong format",
    "v_div_scale_f64": "see solbench.gfx12.division: no result where nothing is scaled",
    "v_div_fmas_f32": "the factor is 2**64 or 2**-64, not 2**32",
    "v_div_fmas_f64": "the factor is 2**128 or 2**-128, not 2**64",
    **{f"v_div_fixup_{kind}": "a NaN quotient of two numbers must become infinity" for kind in ("f16", "f32", "f64")},
    **{name: _DOT for name in ("v_dot2_f32_f16", "v_dot2_f32_bf16", "v_dot2_f16_f16", "v_dot2_bf16_bf16",
                               "v_dot2acc_f32_f16", "v_dot2acc_f32_bf16", "v_dot4_f32_fp8_fp8", "v_dot4_f32_fp8_bf8",
                               "v_dot4_f32_bf8_fp8", "v_dot4_f32_bf8_bf8")},
    "v_cvt_off_f32_i4": "the guide does not print its table",
    "v_cvt_sr_fp8_f32": "noise that wraps the mantissa and then rounds to nearest is no stochastic rounding",
    "v_cvt_sr_bf8_f32": "as v_cvt_sr_fp8_f32",
    "v_trig_preop_f64": "the guide's shift brings no bits in for segment 0; LLVM folds it with 53 more",
    "v_swap_b32": "writes its operand",
    "v_swap_b16": "writes its operand",
    **{name: _LANES for name in ("v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_permlane16_b32",
                                 "v_permlanex16_b32", "v_permlane16_var_b32", "v_permlanex16_var_b32",
                                 "v_permlane64_b32")},
}  # fmt: skip
# Results within so many units of the last place: the guide's formula rounds twice where the table rounds once.
ULPS = {f"{prefix}rsq_f16": 1 for prefix in ("v_", "v_s_")} | {"v_rsq_f64": 1}
