"""Value by value: floating-point arithmetic, elementary functions, broadcasts."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from triton.language.extra.hip import libdevice

from tests.solbench.gfx12.kernels.case import Case, Inputs, integers, normal

N, BLOCK = 1000, 256
F32 = "a few roundings of float32"


def grid(n: int = N, block: int = BLOCK) -> tuple[int]:
    return (triton.cdiv(n, block),)


@triton.jit
def _add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


def add(x, y):
    out = torch.empty_like(x)
    _add[grid(x.numel())](x, y, out, x.numel(), BLOCK)
    return out


@triton.jit
def _axpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, inside) - tl.load(y + at, inside), inside)


def axpy(x, y, a):
    out = torch.empty_like(x)
    _axpy[grid(x.numel())](x, y, out, a, x.numel(), BLOCK)
    return out


@triton.jit
def _unary(x, out, n, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, inside, other=1.0)
    if WHAT == "gelu_erf":
        r = 0.5 * v * (1 + tl.math.erf(v * 0.7071067811865476))
    elif WHAT == "gelu_tanh":
        r = 0.5 * v * (1 + libdevice.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))
    elif WHAT == "sin_cos":
        r = tl.sin(v) + 2 * tl.cos(v)
    elif WHAT == "log_exp":
        r = tl.log(tl.abs(v)) + tl.log2(tl.abs(v) + 1) + tl.exp(v) + tl.exp2(v)
    elif WHAT == "roots":
        r = tl.sqrt(tl.abs(v)) + tl.rsqrt(tl.abs(v)) + tl.sqrt_rn(v * v + 1) + tl.div_rn(v, 3.0)
    elif WHAT == "sigmoid":
        r = tl.sigmoid(v)
    elif WHAT == "rounding":
        r = tl.floor(v) + 10 * tl.ceil(v) + 100 * libdevice.trunc(v) + 1000 * libdevice.rint(v)
    elif WHAT == "library":
        r = libdevice.log1p(tl.abs(v)) + libdevice.expm1(v) + libdevice.atan(v) + libdevice.pow(tl.abs(v), 1.7)
    tl.store(out + at, r, inside)


def unary(what: str):
    def run(x):
        out = torch.empty_like(x)
        _unary[grid(x.numel())](x, out, x.numel(), what, BLOCK)
        return out

    return run


def reference_of(what: str):
    def reference(x):
        v = x.double()
        size = v.abs()
        return {
            "gelu_erf": lambda: 0.5 * v * (1 + torch.erf(v / math.sqrt(2))),
            "gelu_tanh": lambda: torch.nn.functional.gelu(v, approximate="tanh"),
            "sin_cos": lambda: v.sin() + 2 * v.cos(),
            "log_exp": lambda: size.log() + (size + 1).log2() + v.exp() + v.exp2(),
            "roots": lambda: size.sqrt() + size.rsqrt() + (v * v + 1).sqrt() + v / 3,
            "sigmoid": lambda: v.sigmoid(),
            "rounding": lambda: v.floor() + 10 * v.ceil() + 100 * v.trunc() + 1000 * v.round(),
            "library": lambda: size.log1p() + v.expm1() + v.atan() + size.pow(float(torch.tensor(1.7))),
        }[what]()

    return reference


def some(scale: float = 3.0, dtype: torch.dtype = torch.float32, n: int = N):
    return lambda g: {"x": (normal(g, n) * scale).to(dtype)}


@triton.jit
def _silu_mul(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    gate = tl.load(x + row * 2 * columns + at, inside).to(tl.float32)
    up = tl.load(x + row * 2 * columns + columns + at, inside).to(tl.float32)
    tl.store(out + row * columns + at, gate / (1 + tl.exp(-gate)) * up, inside)


def silu_mul(x):
    rows, columns = x.shape[0], x.shape[1] // 2
    out = torch.empty((rows, columns), dtype=x.dtype)
    _silu_mul[(rows, triton.cdiv(columns, 128))](x, out, columns, 128)
    return out


@triton.jit
def _nan_rules(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, inside), tl.load(y + at, inside)
    tl.store(out + at, tl.maximum(a, b), inside)
    tl.store(out + n + at, tl.minimum(a, b), inside)
    tl.store(out + 2 * n + at, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL), inside)
    tl.store(out + 3 * n + at, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL), inside)
    tl.store(out + 4 * n + at, tl.clamp(a, -1.0, 1.0), inside)
    tl.store(out + 5 * n + at, tl.where(a > b, a, b), inside)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 3e38, -3e38]


def nan_inputs(_: torch.Generator) -> Inputs:
    x = torch.tensor(SPECIAL)
    return {"x": x.repeat_interleave(len(x)), "y": x.repeat(len(x))}


def nan_rules(x, y):
    out = torch.empty((6, len(x)))
    _nan_rules[(1,)](x, y, out, len(x), 256)
    return out


def nan_reference(x, y):
    """IEEE 754-2019: minimumNumber and maximumNumber, then minimum and maximum; -0 is less than +0."""
    zeros = (x == 0) & (y == 0)
    high = torch.where(zeros, x + y, torch.maximum(x, y))  # -0 from two of them only
    low = torch.where(zeros, -(-x - y), torch.minimum(x, y))
    quiet = lambda value: torch.where(x.isnan(), y, torch.where(y.isnan(), x, value))  # noqa: E731
    clamped = torch.where(x.isnan(), torch.tensor(-1.0), x.clamp(-1, 1))
    return torch.stack([quiet(high), quiet(low), high, low, clamped, torch.where(x > y, x, y)])


@triton.jit
def _double(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a, b = tl.load(x + at, inside), tl.load(y + at, inside, other=1.0)
    tl.store(out + at, tl.fma(a, b, a / b) + tl.sqrt(tl.abs(a)) - tl.floor(b) + tl.maximum(a, b), inside)


def double(x, y):
    out = torch.empty_like(x)
    _double[grid(len(x))](x, y, out, len(x), BLOCK)
    return out


@triton.jit
def _double_functions(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, inside, other=1.0)
    tl.store(out + at, tl.exp(a) + tl.log(tl.abs(a)) + tl.sin(a), inside)


def double_functions(x):
    out = torch.empty_like(x)
    _double_functions[grid(len(x))](x, out, len(x), BLOCK)
    return out


@triton.jit
def _strided(x, y, out, rows, columns, sx0, sx1, so0, so1, so2, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    inside = (r < rows) & (c < columns)
    plane = tl.program_id(2)
    v = tl.load(x + r * sx0 + c * sx1, inside) * tl.load(y + plane * columns + c, c < columns)
    tl.store(out + plane * so0 + r * so1 + c * so2, v, inside)


def strided(x, y):
    """x transposed times each row of y, into a tensor whose last dimension is not its fastest."""
    rows, columns = x.shape[1], x.shape[0]
    out = torch.empty((len(y), columns, rows)).transpose(1, 2)
    _strided[(triton.cdiv(rows, 16), triton.cdiv(columns, 32), len(y))](
        x.t(), y, out, rows, columns, *x.t().stride(), *out.stride(), 16, 32
    )
    return out


@triton.jit
def _persistent(x, out, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < n) * 2 + tl.num_programs(1), at < n)


def persistent(x):
    out = torch.empty_like(x)
    _persistent[(3, 2)](x, out, len(x), 128)
    return out


@triton.jit
def _in_place(x, n, BLOCK: tl.constexpr):
    """Fewer values than threads: several waves load the same ones, and one of them stores."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, at < n) * 3, at < n)


def in_place(x):
    x = x.clone()
    _in_place[grid(len(x), 64)](x, len(x), 64, num_warps=8)
    return x


def two(dtype: torch.dtype, scale: float = 1.0):
    return lambda g: {"x": (normal(g, N) * scale).to(dtype), "y": (normal(g, N) * scale).to(dtype)}


def two_integers(low: int, high: int, dtype: torch.dtype):
    return lambda g: {"x": integers(g, low, high, N, dtype=dtype), "y": integers(g, low, high, N, dtype=dtype)}


CASES = (
    Case("add_f32", two(torch.float32), add, lambda x, y: x + y),
    Case("add_f16", two(torch.float16), add, lambda x, y: x + y),
    Case("add_i64", two_integers(-(2**62), 2**62, torch.int64), add, lambda x, y: x + y),
    Case("add_u8", two_integers(0, 256, torch.uint8), add, lambda x, y: x + y),
    Case("axpy_bf16", lambda g: {**two(torch.bfloat16)(g), "a": 0.75}, axpy,
         lambda x, y, a: a * x.double() - y.double(), 2**-7, 2**-7, "two roundings to bfloat16's 8 bits"),
    Case("axpy_f64", lambda g: {**two(torch.float64)(g), "a": 0.75}, axpy,
         lambda x, y, a: a * x - y, 2**-52, 2**-50, "one or two roundings of float64"),
    Case("gelu_erf", some(), unary("gelu_erf"), reference_of("gelu_erf"), 2e-6, 1e-6, F32),
    Case("gelu_tanh", some(), unary("gelu_tanh"), reference_of("gelu_tanh"), 2e-6, 1e-6, F32),
    Case("sin_cos", some(), unary("sin_cos"), reference_of("sin_cos"), 2e-6, 1e-6, F32),
    Case("sin_cos_large", some(1e7), unary("sin_cos"), reference_of("sin_cos"), 2e-6, 1e-6, F32),
    Case("log_exp", some(), unary("log_exp"), reference_of("log_exp"), 2e-6, 2e-6, F32),
    Case("roots", some(), unary("roots"), reference_of("roots"), 2e-6, 1e-6, F32),
    Case("sigmoid_f16", some(dtype=torch.float16), lambda x: unary("sigmoid")(x.float()).half(),
         reference_of("sigmoid"), 2**-10, 0, "one rounding to float16"),
    Case("rounding", some(), unary("rounding"), reference_of("rounding"), 1e-6, 0, F32),
    Case("library", some(), unary("library"), reference_of("library"), 5e-6, 2e-6, F32),
    Case("silu_mul_bf16", lambda g: {"x": normal(g, 5, 600, dtype=torch.bfloat16)}, silu_mul,
         lambda x: torch.nn.functional.silu(x[:, :300].double()) * x[:, 300:].double(), 2**-8, 1e-6,
         "one rounding to bfloat16"),
    Case("nan_rules", nan_inputs, nan_rules, nan_reference),
    Case("double", two(torch.float64, 5), double,
         lambda x, y: x * y + x / y + x.abs().sqrt() - y.floor() + torch.maximum(x, y), 1e-14, 1e-13,
         "a few roundings of float64"),
    Case("double_functions", some(dtype=torch.float64), double_functions,
         lambda x: x.exp() + x.abs().log() + x.sin(), 1e-14, 1e-13, "a few roundings of float64"),
    Case("strided", lambda g: {"x": normal(g, 50, 37), "y": normal(g, 3, 50)}, strided,
         lambda x, y: x.t()[None] * y[:, None, :]),
    Case("persistent_loop", some(), persistent, lambda x: x * 2 + 2),
    Case("in_place_replicated", some(), in_place, lambda x: x * 3),
)  # fmt: skip
