"""Matrix products of every format, whole and ragged, split, batched, grouped, quantised."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.solbench.gfx12.kernels.case import Case, Inputs, integers, normal

SUM = "sums of float32 in another order"


@triton.jit
def _product(
    a, b, c, bias, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr = "f32", EPILOGUE: tl.constexpr = "",
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32 if KIND == "i32" else (tl.float16 if KIND == "f16" else tl.float32))
    for k in range(0, K, BK):
        left, right = (rows < M)[:, None] & (k + ks < K)[None, :], (k + ks < K)[:, None] & (columns < N)[None, :]
        zero = 0 if KIND == "i32" else 0.0
        x = tl.load(a + rows[:, None] * sam + (k + ks)[None, :] * sak, left, zero)
        y = tl.load(b + (k + ks)[:, None] * sbk + columns[None, :] * sbn, right, zero)
        if KIND == "f16":
            total = tl.dot(x, y, total, out_dtype=tl.float16)
        elif KIND == "ieee":
            total = tl.dot(x, y, total, input_precision="ieee")
        else:
            total = tl.dot(x, y, total)
    if EPILOGUE == "bias_relu":
        total = tl.maximum(total + tl.load(bias + columns, columns < N, 0.0)[None, :], 0.0)
    to = c + rows[:, None] * scm + columns[None, :] * scn
    tl.store(to, total.to(c.dtype.element_ty), (rows < M)[:, None] & (columns < N)[None, :])


def product(tiles=(32, 32, 32), kind="f32", out=torch.float32, warps=4, epilogue="", stages=2):
    def run(a, b, bias=None):
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty(m, n, dtype=out)
        grid = (triton.cdiv(m, tiles[0]), triton.cdiv(n, tiles[1]))
        _product[grid](a, b, c, bias, m, n, k, *a.stride(), *b.stride(), *c.stride(), *tiles, kind, epilogue,
                       num_warps=warps, num_stages=stages)  # fmt: skip
        return c

    return run


def exact(a, b):
    return a.double() @ b.double()


def matrices(m: int, n: int, k: int, dtype: torch.dtype, other: torch.dtype | None = None, transposed: bool = False):
    def inputs(g: torch.Generator) -> Inputs:
        if not dtype.is_floating_point:
            return {"a": integers(g, -128, 128, m, k, dtype=dtype), "b": integers(g, -128, 128, k, n, dtype=dtype)}
        b = normal(g, n, k).to(other or dtype).t() if transposed else normal(g, k, n).to(other or dtype)
        return {"a": normal(g, m, k).to(dtype), "b": b}

    return inputs


@triton.jit
def _split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.program_id(2) * BK, K, SPLIT * BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + ks[None, :], (rows < M)[:, None] & (ks < K)[None, :], 0.0)
        y = tl.load(b + ks[:, None] * N + columns[None, :], (ks < K)[:, None] & (columns < N)[None, :], 0.0)
        total = tl.dot(x, y, total)
    tl.atomic_add(
        c + rows[:, None] * N + columns[None, :], total, (rows < M)[:, None] & (columns < N)[None, :], sem="relaxed"
    )


def split_k(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros(m, n)
    _split_k[(triton.cdiv(m, 32), triton.cdiv(n, 32), 3)](a, b, c, m, n, k, 32, 32, 32, 3)
    return c


@triton.jit
def _persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), down * across, tl.num_programs(0)):
        first = tile // (GROUP * across) * GROUP
        size = min(down - first, GROUP)
        pm, pn = first + tile % (GROUP * across) % size, tile % (GROUP * across) // size
        rows, columns = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            ks = k + tl.arange(0, BK)
            x = tl.load(a + (rows % M)[:, None] * K + ks[None, :], (ks < K)[None, :], 0.0)
            y = tl.load(b + ks[:, None] * N + (columns % N)[None, :], (ks < K)[:, None], 0.0)
            total = tl.dot(x, y, total)
        to = c + rows[:, None] * N + columns[None, :]
        tl.store(to, total.to(c.dtype.element_ty), (rows < M)[:, None] & (columns < N)[None, :])


def persistent(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype)
    _persistent[(2,)](a, b, c, m, n, k, 32, 32, 32, 2)
    return c


@triton.jit
def _batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c[i] = a[i] b[i]^T, by tensor descriptors that the kernel makes."""
    batch = tl.program_id(2)
    pm, pn = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = tl.make_tensor_descriptor(a + batch * M * K, (M, K), (K, 1), (BM, BK))
    y = tl.make_tensor_descriptor(b + batch * N * K, (N, K), (K, 1), (BN, BK))
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(x.load([pm, k]), tl.trans(y.load([pn, k])), total)
    z = tl.make_tensor_descriptor(c + batch * M * N, (M, N), (N, 1), (BM, BN))
    z.store([pm, pn], total.to(c.dtype.element_ty))


def batched(a, b):
    (s, m, k), n = a.shape, b.shape[1]
    c = torch.empty(s, m, n, dtype=a.dtype)
    _batched[(triton.cdiv(m, 32), triton.cdiv(n, 32), s)](a, b, c, m, n, k, 32, 32, 32)
    return c


@triton.jit
def _int4(a, packed, scales, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """Weights of four bits, two a byte along K, with a scale for GROUP of them."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + ks[None, :], (rows < M)[:, None], 0.0)
        byte = tl.load(packed + (ks // 2)[:, None] * N + columns[None, :], (columns < N)[None, :], 0)
        code = (byte >> ((ks % 2) * 4).to(tl.uint8)[:, None]) & 15
        scale = tl.load(scales + (ks // GROUP)[:, None] * N + columns[None, :], (columns < N)[None, :], 0.0)
        total = tl.dot(x, ((code.to(tl.int32) - 8).to(tl.float16) * scale), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total, (rows < M)[:, None] & (columns < N)[None, :])


def int4(a, packed, scales):
    (m, k), n = a.shape, packed.shape[1]
    c = torch.empty(m, n)
    _int4[(triton.cdiv(m, 16), triton.cdiv(n, 32))](a, packed, scales, c, m, n, k, 16, 32, 32, 32)
    return c


def int4_reference(a, packed, scales):
    codes = torch.stack([packed & 15, packed >> 4], 1).reshape(-1, packed.shape[1]).int() - 8
    weights = codes.half() * scales.repeat_interleave(32, 0)
    return a.double() @ weights.double()


@triton.jit
def _grouped(addresses, sizes, groups, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of different sizes: their matrices are found by addresses in memory, tiles are dealt out in turn."""
    tile = tl.program_id(0)
    before = 0
    for group in range(groups):
        M, N, K = tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1), tl.load(sizes + group * 3 + 2)
        a = tl.load(addresses + group * 3).to(tl.pointer_type(tl.float16))
        b = tl.load(addresses + group * 3 + 1).to(tl.pointer_type(tl.float16))
        c = tl.load(addresses + group * 3 + 2).to(tl.pointer_type(tl.float32))
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= before and tile < before + tiles:
            rows = (tile - before) // across * BM + tl.arange(0, BM)
            columns = (tile - before) % across * BN + tl.arange(0, BN)
            total = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                ks = k + tl.arange(0, BK)
                x = tl.load(a + rows[:, None] * K + ks[None, :], (rows < M)[:, None] & (ks < K)[None, :], 0.0)
                y = tl.load(b + ks[:, None] * N + columns[None, :], (ks < K)[:, None] & (columns < N)[None, :], 0.0)
                total = tl.dot(x, y, total)
            tl.store(c + rows[:, None] * N + columns[None, :], total, (rows < M)[:, None] & (columns < N)[None, :])
            tile += tl.num_programs(0)
        before += tiles


def grouped(a0, b0, a1, b1, a2, b2):
    pairs = [(a0, b0), (a1, b1), (a2, b2)]
    results = [torch.empty(a.shape[0], b.shape[1]) for a, b in pairs]
    addresses = torch.tensor([[a.data_ptr(), b.data_ptr(), c.data_ptr()]
                              for (a, b), c in zip(pairs, results, strict=True)])  # fmt: skip
    sizes = torch.tensor([[*a.shape, b.shape[1]] for a, b in pairs], dtype=torch.int32)[:, [0, 2, 1]].contiguous()
    _grouped[(3,)](addresses, sizes, 3, 16, 32, 32)
    return tuple(results)


def groups(g: torch.Generator) -> Inputs:
    found = {}
    for number, (m, n, k) in enumerate([(20, 40, 33), (50, 30, 64), (16, 16, 16)]):
        found[f"a{number}"] = normal(g, m, k, dtype=torch.float16)
        found[f"b{number}"] = normal(g, k, n, dtype=torch.float16)
    return found


@triton.jit
def _scaled_fp8(a, b, sa, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Float8 with a float32 scale for a row of A and a block of B along K."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + ks[None, :], (rows < M)[:, None], 0.0)
        y = tl.load(b + ks[:, None] * N + columns[None, :], (columns < N)[None, :], 0.0)
        left = tl.load(sa + rows * (K // BK) + k // BK, rows < M, 0.0)
        right = tl.load(sb + k // BK * N + columns, columns < N, 0.0)
        total += tl.dot(x, y) * left[:, None] * right[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total, (rows < M)[:, None] & (columns < N)[None, :])


def scaled_fp8(a, b, sa, sb):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n)
    _scaled_fp8[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, sa, sb, c, m, n, k, 32, 32, 32)
    return c


def scaled_reference(a, b, sa, sb):
    x = a.double() * sa.double().repeat_interleave(32, 1)
    return x @ (b.double() * sb.double().repeat_interleave(32, 0))


@triton.jit
def _three(a, b, c, S: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """tl.dot of three dimensions, one work-group a block of S batches."""
    s = tl.program_id(0) * S + tl.arange(0, S)[:, None, None]
    m, n = tl.arange(0, M)[None, :, None], tl.arange(0, N)[None, None, :]
    x = tl.load(a + (s * M + m) * K + tl.arange(0, K)[None, None, :])
    y = tl.load(b + (s * K + tl.arange(0, K)[None, :, None]) * N + n)
    tl.store(c + (s * M + m) * N + n, tl.dot(x, y))


def three(a, b):
    s, m, k = a.shape
    c = torch.empty(s, m, b.shape[2])
    _three[(s // 2,)](a, b, c, 2, m, b.shape[2], k)
    return c


@triton.jit
def _microscaled(a, b, scales, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """tl.dot_scaled: e2m1 with a power of two for 32 values, against bfloat16."""
    m, n = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    x = tl.load(a + m[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    s = tl.load(scales + m[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    y = tl.load(b + tl.arange(0, K)[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot_scaled(x, s, "e2m1", y, None, "bf16"))


def microscaled(a, b, scales):
    c = torch.empty(len(a), b.shape[1])
    _microscaled[(len(a) // 32,)](a, b, scales, c, 32, b.shape[1], b.shape[0])
    return c


def microscaled_reference(a, b, scales):
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
    codes = torch.stack([a & 15, a >> 4], 2).reshape(len(a), -1).long()
    return values[codes] * torch.exp2(scales.double() - 127).repeat_interleave(32, 1) @ b.double()


def microscaled_inputs(g: torch.Generator) -> Inputs:
    return {"a": integers(g, 0, 256, 64, 32, dtype=torch.uint8), "b": normal(g, 64, 32, dtype=torch.bfloat16),
            "scales": integers(g, 120, 134, 64, 2, dtype=torch.uint8)}  # fmt: skip


@triton.jit
def _chain(x, w, v, out, N: tl.constexpr):
    """Two products in a row: the result of one becomes an operand of the next."""
    r = tl.program_id(0) * N + tl.arange(0, N)[:, None]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    h = tl.dot(tl.load(x + r * N + tl.arange(0, N)[None, :]), tl.load(w + at))
    h = tl.maximum(h, 0.0).to(tl.float16)
    tl.store(out + r * N + tl.arange(0, N)[None, :], tl.dot(h, tl.load(v + at)))


def chain(x, w, v):
    out = torch.empty(x.shape)
    _chain[(len(x) // 32,)](x, w, v, out, 32)
    return out


def chain_reference(x, w, v):
    return (x.double() @ w.double()).clamp(min=0).half().double() @ v.double()


@triton.jit
def _descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tiles by tensor descriptors that the host made."""
    pm, pn = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([pm, k]), b.load([k, pn]), total)
    c.store([pm, pn], total)


def descriptors(a, b):
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n)
    views = [TensorDescriptor.from_tensor(tensor, [32, 32]) for tensor in (a, b, c)]
    _descriptors[(triton.cdiv(m, 32), triton.cdiv(n, 32))](*views, m, n, k, 32, 32, 32)
    return c


F16, BF16, F32, I8 = torch.float16, torch.bfloat16, torch.float32, torch.int8
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2

CASES = (
    Case("product_f16", matrices(64, 64, 64, F16), product(), exact, 1e-5, 1e-5, SUM),
    Case("product_f16_transposed", matrices(64, 64, 64, F16, transposed=True), product(), exact, 1e-5, 1e-5, SUM),
    Case("product_bf16", matrices(64, 64, 64, BF16), product(out=BF16), exact, 2**-8, 1e-5, "one rounding to bfloat16"),
    Case("product_bf16_ragged", matrices(50, 45, 77, BF16), product(), exact, 1e-5, 1e-5, SUM),
    Case("product_f16_tiles", matrices(130, 140, 70, F16), product((64, 128, 32), warps=8), exact, 1e-5, 1e-5, SUM),
    Case("product_f16_pipelined", matrices(64, 64, 200, F16), product(stages=4), exact, 1e-5, 1e-5, SUM),
    Case("product_f16_one_wave", matrices(20, 20, 48, F16), product((16, 16, 16), warps=1), exact, 1e-5, 1e-5, SUM),
    Case("product_f32", matrices(40, 40, 50, F32), product(kind="ieee"), exact, 1e-5, 1e-5, SUM),
    Case("product_i8", matrices(64, 40, 70, I8), product(kind="i32", out=torch.int32),
         lambda a, b: (a.long() @ b.long()).int()),
    Case("product_e4m3", matrices(50, 64, 64, E4M3), product(), exact, 1e-5, 1e-4, SUM),
    Case("product_e5m2", matrices(50, 64, 64, E5M2), product(), exact, 1e-5, 1e-4, SUM),
    Case("product_e4m3_e5m2", matrices(50, 64, 64, E4M3, E5M2), product(), exact, 1e-5, 1e-4, SUM),
    Case("product_f16_sums", matrices(64, 64, 64, F16), product(kind="f16", out=F16), exact, 2**-8, 2**-6,
         "sums of at most 64 products, rounded to float16 once a step"),
    Case("product_bias_relu", lambda g: {**matrices(50, 40, 64, F16)(g), "bias": normal(g, 40)},
         product(epilogue="bias_relu", out=F16), lambda a, b, bias: (exact(a, b) + bias).clamp(min=0), 2**-10, 1e-5,
         "one rounding to float16"),
    Case("split_k", matrices(40, 50, 200, F16), split_k, exact, 1e-5, 1e-5, SUM),
    Case("persistent_product", matrices(70, 80, 64, BF16), persistent, exact, 2**-8, 1e-5, "one rounding to bfloat16"),
    Case("batched", lambda g: {"a": normal(g, 3, 40, 48, dtype=F16), "b": normal(g, 3, 48, 48, dtype=F16)}, batched,
         lambda a, b: a.double() @ b.double().mT, 2**-10, 1e-5, "one rounding to float16"),
    Case("int4_weights", lambda g: {"a": normal(g, 20, 64, dtype=F16),
                                    "packed": integers(g, 0, 256, 32, 50, dtype=torch.uint8),
                                    "scales": normal(g, 2, 50, dtype=F16)}, int4, int4_reference, 1e-5, 1e-4, SUM),
    Case("grouped", groups, grouped, lambda a0, b0, a1, b1, a2, b2: (exact(a0, b0), exact(a1, b1), exact(a2, b2)),
         1e-5, 1e-5, SUM),
    Case("scaled_fp8", lambda g: {**matrices(40, 50, 64, E4M3)(g), "sa": torch.rand(40, 2, generator=g),
                                  "sb": torch.rand(2, 50, generator=g)}, scaled_fp8, scaled_reference, 1e-5, 1e-4,
         SUM),
    Case("dot_of_three_dimensions", lambda g: {"a": normal(g, 4, 16, 32, dtype=F16),
                                               "b": normal(g, 4, 32, 16, dtype=F16)}, three, exact, 1e-5, 1e-5, SUM),
    Case("microscaled", microscaled_inputs, microscaled, microscaled_reference, 1e-5, 1e-3, SUM),
    Case("chain", lambda g: {"x": normal(g, 64, 32, dtype=F16), "w": normal(g, 32, 32, dtype=F16),
                             "v": normal(g, 32, 32, dtype=F16)}, chain, chain_reference, 2e-3, 2e-2,
         "an intermediate value may round the other way"),
    Case("descriptors", matrices(50, 48, 64, F16), descriptors, exact, 1e-5, 1e-5, SUM),
)  # fmt: skip
