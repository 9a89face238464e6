"""Kernels under the patched interpreter, each against PyTorch. Run as a program, since Triton's mode is a process's.

Prints a mapping of each check's name to None or what went wrong. ``bare`` as argument: without the patch.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sys
import tempfile
import traceback
from pathlib import Path

import torch

from solbench.evaluate import triton_interpreter

if "bare" in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"
else:
    triton_interpreter.install()

import triton
import triton.language as tl
from triton.language.extra import libdevice

N = 512
BF16 = torch.bfloat16
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def numbers(*shape, dtype=BF16, scale=3.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * scale).to(dtype)


def same(found, expected):
    """Bit for bit, NaN being NaN."""
    found, expected = found.float(), expected.float()
    wrong = ~((found == expected) | (found.isnan() & expected.isnan()))
    assert not wrong.any(), (
        f"{int(wrong.sum())} of {wrong.numel()}: {found[wrong][:3].tolist()}, not {expected[wrong][:3].tolist()}"
    )


def refused(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001
        reason = triton_interpreter.refused(error)
        assert reason, f"no refusal: {error!r}"
        return reason
    raise AssertionError("it ran")


@triton.jit
def _binary(a, b, out, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    y = tl.load(b + i)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "div":
        z = x / y
    elif OP == "mod":
        z = x % y
    elif OP == "max":
        z = tl.maximum(x, y)
    elif OP == "min":
        z = tl.minimum(x, y)
    elif OP == "less":
        z = x < y
    elif OP == "less_equal":
        z = x <= y
    elif OP == "greater":
        z = x > y
    elif OP == "greater_equal":
        z = x >= y
    elif OP == "equal":
        z = x == y
    elif OP == "not_equal":
        z = x != y
    elif OP == "where":
        z = tl.where(x > y, x, y - x)
    elif OP == "fma":
        z = tl.fma(x, y, x)
    elif OP == "clamp":
        z = tl.clamp(x, -1.5, 1.5)
    elif OP == "constants":
        z = (x * 2.5 + 1) / 3 - y
    elif OP == "negative":
        z = -x + (-y)
    elif OP == "absolute":
        z = tl.abs(x)
    elif OP == "in_float32":
        z = (tl.exp(x.to(tl.float32)) * tl.sigmoid(y.to(tl.float32))).to(tl.bfloat16)
    else:
        tl.static_assert(False)
    tl.store(out + i, z)


BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "mod": torch.fmod, "max": torch.maximum,
    "min": torch.minimum, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge,
    "equal": torch.eq, "not_equal": torch.ne, "where": lambda x, y: torch.where(x > y, x, y - x),
    "fma": lambda x, y: (x.double() * y.double() + x.double()).to(BF16),
    "clamp": lambda x, y: x.clamp(-1.5, 1.5),
    # Triton divides bfloat16 in float32.
    "constants": lambda x, y: ((x * 2.5 + 1).float() / 3 - y.float()).to(BF16),
    "negative": lambda x, y: -x - y, "absolute": lambda x, y: x.abs(),
}  # fmt: skip


def _binary_check(name):
    def run():
        for seed in range(3):
            x, y = numbers(N, seed=seed), numbers(N, seed=seed + 10)
            y[::7] = x[::7]
            y[0], x[1], x[2], y[3] = float("inf"), -float("inf"), float("nan"), float("nan")
            if name in ("clamp", "max", "min", "absolute"):  # cards differ, or say so, about NaN here
                x, y = x.nan_to_num(0.0), y.nan_to_num(0.0)
            expected = BINARY[name](x, y)
            out = torch.zeros(N, dtype=torch.int8 if expected.dtype == torch.bool else BF16)
            _binary[(1,)](x, y, out, name, N)
            same(out, expected)

    run.__name__ = f"bf16_{name}"
    return run


for _name in BINARY:
    check(_binary_check(_name))


@check
def bf16_functions_in_float32():
    x, y, out = numbers(N), numbers(N, seed=1), torch.zeros(N, dtype=BF16)
    _binary[(1,)](x, y, out, "in_float32", N)
    torch.testing.assert_close(out.float(), x.float().exp() * y.float().sigmoid(), rtol=2**-8, atol=0)


EXPRESSION = """
import triton
import triton.language as tl

@triton.jit
def kernel(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    y = tl.load(b + i)
    tl.store(out + i, {})
"""
# The same operation as Triton and as PyTorch write it; Triton divides in float32, and some versions compare so.
OPERATIONS = [
    ("({} + {})", "({} + {})"), ("({} - {})", "({} - {})"), ("({} * {})", "({} * {})"),
    ("tl.maximum({}, {}).to(tl.bfloat16)", "torch.maximum({}, {})"),
    ("tl.minimum({}, {}).to(tl.bfloat16)", "torch.minimum({}, {})"),
    ("tl.where({0} < {1}, {1}, {0} * 0.5)", "torch.where({0} < {1}, {1}, {0} * 0.5)"),
    ("({} / {}).to(tl.bfloat16)", "({}.float() / {}.float()).to(BF16)"),
    ("({} + {}.to(tl.float32)).to(tl.bfloat16)", "({}.float() + {}.float()).to(BF16)"),
    ("(-{} + {})", "(-{} + {})"), ("tl.abs({} * {})", "({} * {}).abs()"),
]  # fmt: skip


@check
def random_expressions_of_bf16():
    chooser = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(40):
            pairs = [("x", "x"), ("y", "y"), ("x", "x"), ("y", "y"), ("(x * 0.75)", "(x * 0.75)")]
            while len(pairs) > 1:
                left, right = (pairs.pop(chooser.randrange(len(pairs))) for _ in range(2))
                ours, theirs = chooser.choice(OPERATIONS)
                pairs.append((ours.format(left[0], right[0]), theirs.format(left[1], right[1])))
            path = Path(folder) / f"kernel_{number}.py"
            path.write_text(EXPRESSION.format(pairs[0][0]))
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            x, y, out = numbers(N, seed=number), numbers(N, seed=number + 100), torch.zeros(N, dtype=BF16)
            module.kernel[(1,)](x, y, out, N)
            expected = eval(pairs[0][1], {"torch": torch, "x": x, "y": y, "BF16": BF16})  # noqa: S307
            same(out.nan_to_num(0.0), expected.nan_to_num(0.0))


@triton.jit
def _cast(a, out, N: tl.constexpr, ROUNDING: tl.constexpr):
    i = tl.arange(0, N)
    if ROUNDING is None:
        tl.store(out + i, tl.load(a + i).to(out.dtype.element_ty))
    else:
        tl.store(out + i, tl.load(a + i).to(out.dtype.element_ty, fp_downcast_rounding=ROUNDING))


def cast(x, dtype, rounding=None):
    out = torch.zeros(len(x), dtype=dtype)
    _cast[(1,)](x, out, len(x), rounding)
    return out


def middles(dtype):
    """float32 numbers in the middle between neighbours of a format, and just beside."""
    codes = torch.arange(1 << 7 if dtype != BF16 else 1 << 14, dtype=torch.int32)
    values = codes.to(torch.uint8 if dtype != BF16 else torch.uint16).view(dtype).float()
    values = values[values.isfinite()].sort().values
    middle = (values[1:] + values[:-1]) / 2
    middle = torch.cat([middle, middle.nextafter(torch.tensor(9e37)), middle.nextafter(torch.tensor(0.0))])
    middle = torch.cat([middle, -middle])
    size = 1 << (len(middle) - 1).bit_length()
    return torch.cat([middle, torch.zeros(size - len(middle))])


@check
def casts_to_bf16():
    for x in (middles(BF16), numbers(N, dtype=torch.float32), numbers(N, dtype=torch.float16)):
        same(cast(x, BF16), x.to(BF16))
    special = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0, 3.4e38, 1e-40, 0.0, 1.0])
    same(cast(special, BF16), special.to(BF16))
    x = numbers(N, dtype=torch.float64)
    same(cast(x, BF16), x.to(BF16))
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        x = torch.arange(0, N * 97, 97).to(dtype)
        same(cast(x, BF16), x.to(BF16))
    same(cast(torch.tensor([1.00390625 + 2.0**-9, 1.5]), BF16, "rtz"), torch.tensor([1.0, 1.5]))


@check
def casts_from_bf16():
    x = numbers(N)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64, torch.int16, torch.int8):
        same(cast(x, dtype), x.to(dtype))


FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]


@check
def casts_of_float8():
    for dtype in FLOAT8:
        x = middles(dtype)
        same(cast(x, dtype), x.to(dtype))
        same(cast(numbers(N), dtype), numbers(N).to(dtype))
        small = numbers(N, dtype=torch.float16, scale=0.01)
        same(cast(small, dtype), small.to(dtype))
        every = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)
        for wide in (torch.float32, torch.float16, BF16):
            same(cast(every, wide), every.to(wide))


@check
def refusals_of_float8():
    beyond = torch.tensor([1.0, 1e6])
    for dtype in FLOAT8:
        assert "beyond" in refused(lambda dtype=dtype: cast(beyond, dtype))
        x = numbers(N, dtype=torch.float32, scale=1).to(dtype)
        assert "fadd" in refused(lambda x=x: _binary[(1,)](x, x, x.clone(), "add", N))
        refused(lambda x=x: _binary[(1,)](x, x, torch.zeros(N, dtype=torch.int8), "less", N))


@triton.jit
def _dot(a, b, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, ACC: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    k = tl.arange(0, K)
    x = tl.load(a + i * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j)
    acc = tl.zeros((M, N), dtype=tl.float32)
    if ACC:
        acc = tl.dot(x, y, acc)
        acc = tl.dot(x, y, acc)
    else:
        acc += tl.dot(x, y)
    tl.store(out + i * N + j, acc.to(out.dtype.element_ty))


@check
def dot_of_bf16():
    for out_dtype in (torch.float32, BF16, torch.float16):
        a, b = numbers(32, 64, scale=1), numbers(64, 16, scale=1, seed=1)
        out = torch.zeros(32, 16, dtype=out_dtype)
        _dot[(1,)](a, b, out, 32, 64, 16, True)
        exact = 2 * (a.double() @ b.double())
        torch.testing.assert_close(out.double(), exact, rtol=2**-7 if out_dtype != torch.float32 else 1e-5, atol=1e-3)
        _dot[(1,)](a, b, out, 32, 64, 16, False)
        torch.testing.assert_close(out.double(), exact / 2, rtol=2**-7, atol=1e-3)


@check
def dot_of_float8():
    for dtype in FLOAT8:
        a, b = numbers(32, 64, dtype=torch.float32, scale=1).to(dtype), numbers(64, 16, dtype=torch.float32).to(dtype)
        out = torch.zeros(32, 16)
        _dot[(1,)](a, b, out, 32, 64, 16, True)
        torch.testing.assert_close(out.double(), 2 * (a.double() @ b.double()), rtol=1e-5, atol=1e-4)


@triton.jit
def _add_up(a, b):
    return a + b


@triton.jit
def _larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def _rows(a, out, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, M)
    x = tl.load(a + i[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        z = tl.sum(x, 1)
    elif OP == "max":
        z = tl.max(x, 1)
    elif OP == "min":
        z = tl.min(x, 1)
    elif OP == "argmax":
        z = tl.argmax(x, 1)
    elif OP == "argmin":
        z = tl.argmin(x, 1)
    elif OP == "own_max":
        z = tl.reduce(x, 1, _larger)
    elif OP == "own_sum":
        z = tl.reduce(x, 1, _add_up)
    tl.store(out + i, z)


@triton.jit
def _scan(a, out, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(a + place)
    if OP == "cumsum":
        z = tl.cumsum(x, 1)
    elif OP == "reverse":
        z = tl.cumsum(x, 1, reverse=True)
    elif OP == "own_max":
        z = tl.associative_scan(x, 1, _larger)
    elif OP == "own_max_reverse":
        z = tl.associative_scan(x, 1, _larger, reverse=True)
    elif OP == "sort":
        z = tl.sort(x, 1)
    tl.store(out + place, z)


@check
def reductions_of_bf16():
    x = numbers(8, 32)
    exact = {
        "max": x.amax(1), "min": x.amin(1), "own_max": x.amax(1), "argmax": x.float().argmax(1),
        "argmin": x.float().argmin(1),
    }  # fmt: skip
    for name, expected in exact.items():
        out = torch.zeros(8, dtype=torch.int32 if name.startswith("arg") else BF16)
        _rows[(1,)](x, out, 8, 32, name)
        same(out, expected)
    out = torch.zeros(8, dtype=BF16)
    _rows[(1,)](x, out, 8, 32, "sum")
    torch.testing.assert_close(out.double(), x.double().sum(1), rtol=2**-8, atol=1e-6)
    whole = torch.arange(-128, 128).reshape(8, 32).remainder(7).to(BF16)  # every partial sum is exact
    _rows[(1,)](whole, out, 8, 32, "own_sum")
    same(out, whole.sum(1))


@check
def scans_of_bf16():
    x, out = numbers(4, 16), torch.zeros(4, 16, dtype=BF16)
    exact = {
        "own_max": x.cummax(1).values, "own_max_reverse": x.flip(1).cummax(1).values.flip(1), "sort": x.sort(1).values,
    }  # fmt: skip
    for name, expected in exact.items():
        _scan[(1,)](x, out, 4, 16, name)
        same(out, expected)
    _scan[(1,)](x, out, 4, 16, "cumsum")
    torch.testing.assert_close(out.double(), x.double().cumsum(1), rtol=2**-7, atol=1e-2)
    _scan[(1,)](x, out, 4, 16, "reverse")
    torch.testing.assert_close(out.double(), x.double().flip(1).cumsum(1).flip(1), rtol=2**-7, atol=1e-2)


@triton.jit
def _moves(a, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i, mask=i < n, other=-2.5)
    y = tl.trans(tl.reshape(x, (N // 8, 8)))
    y = tl.reshape(y, (N,)) + tl.zeros((N,), tl.bfloat16) + tl.full((N,), 0.5, tl.bfloat16)
    tl.store(out + i, y, mask=i < n)


@check
def masked_loads_and_moves_of_bf16():
    x, out = numbers(64), torch.full((64,), 7.0, dtype=BF16)
    _moves[(1,)](x, out, 50, 64)
    filled = torch.where(torch.arange(64) < 50, x, torch.tensor(-2.5, dtype=BF16))
    expected = filled.reshape(8, 8).T.reshape(-1) + 0.5
    same(out, torch.where(torch.arange(64) < 50, expected, torch.tensor(7.0, dtype=BF16)))


@triton.jit
def _bits(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    bits = tl.load(a + i).to(tl.uint16, bitcast=True)
    tl.store(out + i, (bits ^ 0x8000).to(tl.uint16).to(tl.bfloat16, bitcast=True))


@check
def bits_of_bf16():
    x, out = numbers(N), torch.zeros(N, dtype=BF16)
    _bits[(1,)](x, out, N)
    same(out, -x)


@triton.jit
def _atomic(a, target, out, n, STEP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    old = tl.atomic_add(target + i // STEP, tl.load(a + i), mask=i < n)
    tl.store(out + i, old, mask=i < n)


@check
def atomic_additions_of_bf16():
    x, out = numbers(64), torch.zeros(64, dtype=BF16)
    target, start = numbers(64, seed=2), numbers(64, seed=2)
    _atomic[(1,)](x, target, out, 50, 1, 64)
    on = torch.arange(64) < 50
    same(target, torch.where(on, start + x, start))
    same(out[:50], start[:50])
    # Several at one address: one after the other, each rounded.
    target, expected = torch.zeros(8, dtype=BF16), torch.zeros(8, dtype=BF16)
    _atomic[(1,)](x, target, out, 50, 8, 64)
    for i in range(50):
        expected[i // 8] += x[i]
    same(target, expected)


@triton.jit
def _branch(a, out, N: tl.constexpr):
    total = tl.sum(tl.load(a + tl.arange(0, N)).to(tl.float32), 0).to(tl.bfloat16)
    if total > 0:
        tl.store(out, total)
    else:
        tl.store(out, -total * 2)


@check
def scalars_of_bf16():
    x, out = torch.full((16,), -0.25, dtype=BF16), torch.zeros(1, dtype=BF16)
    _branch[(1,)](x, out, 16)
    same(out, torch.tensor([8.0]))


@triton.jit
def _library(a, out, N: tl.constexpr, KNOWN: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    if KNOWN:
        tl.store(out + i, libdevice.tanh(x) + libdevice.pow(x, 2.0))
    else:
        tl.store(out + i, libdevice.cyl_bessel_i0(x))


@check
def device_library():
    x, out = numbers(N, dtype=torch.float32), torch.zeros(N)
    _library[(1,)](x, out, N, True)
    torch.testing.assert_close(out, x.tanh() + x.pow(2))
    assert "cyl_bessel_i0" in refused(lambda: _library[(1,)](x, out, N, False))


@triton.jit
def _assembly(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(a + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + i, x)


@check
def what_the_interpreter_lacks():
    x = torch.zeros(16, dtype=torch.int32)
    refused(lambda: _assembly[(1,)](x, x, 16))
    refused(lambda: triton.runtime.driver.active.get_current_target())


@check
def mistakes_are_no_refusals():
    for call in (lambda: _cast[(1,)](None, None, 16, None), lambda: numbers(1) @ numbers(2)):
        try:
            call()
        except Exception as error:  # noqa: BLE001
            assert triton_interpreter.refused(error) is None
        else:
            raise AssertionError("it ran")


@triton.autotune([triton.Config({"BLOCK": size}, num_warps=4) for size in (64, 128)], key=["n"])
@triton.jit
def _tuned(a, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, mask=i < n) * 2, mask=i < n)


@check
def autotuned():
    x, out = numbers(300), torch.zeros(300, dtype=BF16)
    _tuned[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)
    same(out, x * 2)
    assert _tuned.best_config.kwargs == {"BLOCK": 64}


def main():
    found = {}
    for name, function in CHECKS.items():
        try:
            function()
            found[name] = None
        except Exception:  # noqa: BLE001
            found[name] = traceback.format_exc(limit=-4)
    print(json.dumps({"triton": triton.__version__, "checks": found}))


if __name__ == "__main__":
    main()
