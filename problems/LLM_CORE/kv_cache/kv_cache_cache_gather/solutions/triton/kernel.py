"""Pages of a cache gathered into rows of sequences: a page's keys and values are copied as they lie, 128 bits a lane.

Rows beyond a sequence's length are written as zeros and not read. Programs go through the sequences first, so that a
page that several share comes from memory once.
"""

import torch
import triton
import triton.language as tl

CHUNK = 2048  # elements of a page that a program copies, of keys and of values
WARPS = 4


@triton.jit
def gather(
    key_cache, value_cache, block_table, seq_lens, key, value, sequences, width, length, chunks, ROW: tl.constexpr,
    PAGE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """CHUNK elements of one entry of the table, which has ``chunks`` of them; a page is PAGE rows of ROW elements."""
    program = tl.program_id(0)
    sequence = program % sequences
    chunk = program // sequences % chunks
    entry = program // sequences // chunks
    page = tl.load(block_table + sequence * width + entry).to(tl.int64)
    used = tl.load(seq_lens + sequence)
    offset = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = offset < PAGE * ROW
    real = inside & (offset < (used - entry * PAGE) * ROW)
    source = page * (PAGE * ROW) + offset
    target = (sequence.to(tl.int64) * length + entry * PAGE) * ROW + offset
    written = inside & (offset < (length - entry * PAGE) * ROW)
    keys = tl.load(key_cache + source, mask=real, other=0.0)
    values = tl.load(value_cache + source, mask=real, other=0.0)
    tl.store(key + target, keys, mask=written)
    tl.store(value + target, values, mask=written)


def run(key_cache, value_cache, block_table, seq_lens, length):
    _, page, heads, depth = key_cache.shape
    sequences, width = block_table.shape
    key = torch.empty((sequences, length, heads, depth), dtype=key_cache.dtype, device=key_cache.device)
    value = torch.empty_like(key)
    row = heads * depth
    block = min(CHUNK, triton.next_power_of_2(page * row))
    chunks = triton.cdiv(page * row, block)
    gather[(sequences * width * chunks,)](
        key_cache, value_cache, block_table, seq_lens, key, value, sequences, width, length, chunks, row, page, block,
        num_warps=max(1, WARPS * block // CHUNK),
    )  # fmt: skip
    return key, value
