"""Sequences written into pages of a cache that is returned whole: every element of the result is read and written once.

A first kernel notes for each page which entry of the table names it. Nothing sets that list to a start value: what the
second kernel finds there counts only if the table's entry names the page in turn. The second kernel writes the pages,
from the sequence where there is a row for it, else from the old cache, 128 bits a lane.
"""

import torch
import triton
import triton.language as tl

NOTES = 1024  # entries of the table that a program notes
CHUNK = 2048  # elements of a page that a program writes, of keys and of values
WARPS = 4


@triton.jit
def note(block_table, owner, entries, NOTES: tl.constexpr):
    """owner[page] = the entry of the table that names it."""
    entry = tl.program_id(0) * NOTES + tl.arange(0, NOTES)
    page = tl.load(block_table + entry, mask=entry < entries, other=0)
    tl.store(owner + page, entry, mask=entry < entries)


@triton.jit
def scatter(
    key, value, key_cache, value_cache, block_table, seq_lens, owner, key_out, value_out, entries, width, length,
    chunks, ROW: tl.constexpr, PAGE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """CHUNK elements of one page, which has ``chunks`` of them; a page is PAGE rows of ROW elements."""
    program = tl.program_id(0)
    page, chunk = program // chunks, program % chunks
    entry = tl.load(owner + page)
    known = (entry >= 0) & (entry < entries)
    named = tl.load(block_table + entry, mask=known, other=-1) == page
    sequence = tl.where(named, entry // width, 0)
    first = tl.where(named, entry % width * PAGE, 0)
    rows = tl.load(seq_lens + sequence) - first  # how many of the page's rows are new, if above 0
    rows = tl.where(named, rows, 0)
    offset = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = offset < PAGE * ROW
    new = offset < rows * ROW
    source = (sequence.to(tl.int64) * length + first) * ROW + offset
    target = page.to(tl.int64) * (PAGE * ROW) + offset
    # One of the two is loaded, and the other's lanes stay idle.
    new_keys = tl.load(key + source, mask=inside & new)
    old_keys = tl.load(key_cache + target, mask=inside & (offset >= rows * ROW))
    new_values = tl.load(value + source, mask=inside & new)
    old_values = tl.load(value_cache + target, mask=inside & (offset >= rows * ROW))
    tl.store(key_out + target, tl.where(new, new_keys, old_keys), mask=inside)
    tl.store(value_out + target, tl.where(new, new_values, old_values), mask=inside)


def run(key, value, key_cache, value_cache, block_table, seq_lens):
    pages, page, heads, depth = key_cache.shape
    sequences, width = block_table.shape
    key_out, value_out = torch.empty_like(key_cache), torch.empty_like(value_cache)
    owner = torch.empty((pages,), dtype=torch.int32, device=key.device)
    entries, row = sequences * width, heads * depth
    note[(triton.cdiv(entries, NOTES),)](block_table, owner, entries, NOTES, num_warps=4)
    block = min(CHUNK, triton.next_power_of_2(page * row))
    chunks = triton.cdiv(page * row, block)
    scatter[(pages * chunks,)](
        key, value, key_cache, value_cache, block_table, seq_lens, owner, key_out, value_out, entries, width,
        key.shape[1], chunks, row, page, block, num_warps=max(1, WARPS * block // CHUNK),
    )  # fmt: skip
    return key_out, value_out
