"""Non-local block in one kernel: projections, ELU energies, mixing of values and output projection; none is stored.

A program owns BLOCK_J key pixels j and walks over all query pixels i. Values are linear in the pixels, so it sums
pixels times energies, and energies, and projects the sums: no value is computed. With one row of queries and four
channels an energy costs one product, one exponential, four multiply-adds and an addition: too few for the matrix unit,
which would take as many instructions to split its operands and use a quarter of its rows.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _pixels(x_ptr, pixel, PIXELS: tl.constexpr, WHOLE: tl.constexpr):
    """Four channels of some pixels of one image, zero beyond the last pixel."""
    if WHOLE:
        x0 = tl.load(x_ptr + pixel)
        x1 = tl.load(x_ptr + PIXELS + pixel)
        x2 = tl.load(x_ptr + 2 * PIXELS + pixel)
        x3 = tl.load(x_ptr + 3 * PIXELS + pixel)
    else:
        inside = pixel < PIXELS
        x0 = tl.load(x_ptr + pixel, mask=inside, other=0.0)
        x1 = tl.load(x_ptr + PIXELS + pixel, mask=inside, other=0.0)
        x2 = tl.load(x_ptr + 2 * PIXELS + pixel, mask=inside, other=0.0)
        x3 = tl.load(x_ptr + 3 * PIXELS + pixel, mask=inside, other=0.0)
    return x0, x1, x2, x3


@triton.jit
def _row(weight_ptr, row: tl.constexpr, x0, x1, x2, x3):
    """Row ``row`` of a projection of four channels, without its bias."""
    sum01 = tl.load(weight_ptr + 4 * row) * x0 + tl.load(weight_ptr + 4 * row + 1) * x1
    sum23 = tl.load(weight_ptr + 4 * row + 2) * x2 + tl.load(weight_ptr + 4 * row + 3) * x3
    return sum01 + sum23


@triton.jit
def _attend(
    x_ptr,
    query_weight_ptr,
    query_bias_ptr,
    key_weight_ptr,
    key_bias_ptr,
    value_weight_ptr,
    value_bias_ptr,
    gamma_weight_ptr,
    gamma_bias_ptr,
    out_ptr,
    PIXELS: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_J: tl.constexpr,
    WHOLE: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64) * (4 * PIXELS)
    j = tl.program_id(0) * BLOCK_J + tl.arange(0, BLOCK_J)
    own0, own1, own2, own3 = _pixels(x_ptr + image, j, PIXELS, WHOLE)
    key = _row(key_weight_ptr, 0, own0, own1, own2, own3) + tl.load(key_bias_ptr)
    # Sums over this thread's query pixels; threads are added once, at the end.
    mixed0 = tl.zeros((BLOCK_I, BLOCK_J), dtype=tl.float32)
    mixed1 = tl.zeros((BLOCK_I, BLOCK_J), dtype=tl.float32)
    mixed2 = tl.zeros((BLOCK_I, BLOCK_J), dtype=tl.float32)
    mixed3 = tl.zeros((BLOCK_I, BLOCK_J), dtype=tl.float32)
    energies = tl.zeros((BLOCK_I, BLOCK_J), dtype=tl.float32)
    for start in range(0, PIXELS, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        x0, x1, x2, x3 = _pixels(x_ptr + image, i, PIXELS, WHOLE)
        query = _row(query_weight_ptr, 0, x0, x1, x2, x3) + tl.load(query_bias_ptr)
        product = query[:, None] * key[None, :]
        energy = tl.where(product > 0.0, product, tl.exp(tl.minimum(product, 0.0)) - 1.0)
        if not WHOLE:
            energy = tl.where(i[:, None] < PIXELS, energy, 0.0)
        mixed0 += x0[:, None] * energy
        mixed1 += x1[:, None] * energy
        mixed2 += x2[:, None] * energy
        mixed3 += x3[:, None] * energy
        energies += energy
    sum0 = tl.sum(mixed0, axis=0) * (1.0 / PIXELS)
    sum1 = tl.sum(mixed1, axis=0) * (1.0 / PIXELS)
    sum2 = tl.sum(mixed2, axis=0) * (1.0 / PIXELS)
    sum3 = tl.sum(mixed3, axis=0) * (1.0 / PIXELS)
    share = tl.sum(energies, axis=0) * (1.0 / PIXELS)
    value0 = _row(value_weight_ptr, 0, sum0, sum1, sum2, sum3) + tl.load(value_bias_ptr) * share
    value1 = _row(value_weight_ptr, 1, sum0, sum1, sum2, sum3) + tl.load(value_bias_ptr + 1) * share
    value2 = _row(value_weight_ptr, 2, sum0, sum1, sum2, sum3) + tl.load(value_bias_ptr + 2) * share
    value3 = _row(value_weight_ptr, 3, sum0, sum1, sum2, sum3) + tl.load(value_bias_ptr + 3) * share
    for channel in tl.static_range(4):
        result = _row(gamma_weight_ptr, channel, value0, value1, value2, value3) + tl.load(gamma_bias_ptr + channel)
        out_ptrs = out_ptr + image + channel * PIXELS + j
        if WHOLE:
            tl.store(out_ptrs, result)
        else:
            tl.store(out_ptrs, result, mask=j < PIXELS)


def run(x, query_weight, query_bias, key_weight, key_bias, value_weight, value_bias, gamma_weight, gamma_bias):
    images, _, height, width = x.shape
    pixels = height * width
    output = torch.empty_like(x)
    block_j = 16
    block_i = min(triton.next_power_of_2(max(pixels, 16)), 256)
    _attend[(triton.cdiv(pixels, block_j), images)](
        x,
        query_weight,
        query_bias,
        key_weight,
        key_bias,
        value_weight,
        value_bias,
        gamma_weight,
        gamma_bias,
        output,
        PIXELS=pixels,
        BLOCK_I=block_i,
        BLOCK_J=block_j,
        WHOLE=pixels % block_i == 0 and pixels % block_j == 0,
        # Sixteen energies a thread.
        num_warps=max(block_i * block_j // (16 * 32), 1),
    )
    return output
