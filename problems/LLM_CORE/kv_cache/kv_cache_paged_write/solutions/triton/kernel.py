"""New tokens written into slots of a cache that is returned whole: each element of the result is read and written once.

A first kernel notes for each slot which token goes there. Nothing sets that list to a start value: what the second
kernel finds there counts only if the token's slot is this one in turn. The second kernel writes the slots, from the
token where there is one, else from the old cache, 128 bits a lane.
"""

import torch
import triton
import triton.language as tl

NOTES = 1024  # tokens that a program notes
ELEMENTS = 1024  # of a program's slots, of keys and of values
WARPS = 4


@triton.jit
def note(slot_mapping, owner, tokens, NOTES: tl.constexpr):
    """owner[slot] = the token that goes there; a token without a slot has -1."""
    token = tl.program_id(0) * NOTES + tl.arange(0, NOTES)
    slot = tl.load(slot_mapping + token, mask=token < tokens, other=-1)
    tl.store(owner + slot, token, mask=slot >= 0)


@triton.jit
def write(
    key, value, key_cache, value_cache, slot_mapping, owner, key_out, value_out, tokens, slots, row,
    SLOTS: tl.constexpr, ROW: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """SLOTS slots of ``row`` <= ROW elements. EVEN: ROW is row and SLOTS divides slots."""
    first = tl.program_id(0) * SLOTS
    slot = first + tl.arange(0, SLOTS)
    there = slot < slots
    token = tl.load(owner + slot, mask=there, other=-1)
    known = (token >= 0) & (token < tokens)
    new = (tl.load(slot_mapping + token, mask=known, other=-1) == slot)[:, None]
    column = tl.arange(0, ROW)[None, :]
    source = token.to(tl.int64)[:, None] * row + column
    target = slot.to(tl.int64)[:, None] * row + column
    inside = None if EVEN else there[:, None] & (column < row)
    from_token = new & (column >= 0) if EVEN else new & inside
    from_cache = (new == 0) & (column >= 0) if EVEN else (new == 0) & inside
    # One of the two is loaded, and the other's lanes stay idle.
    new_keys = tl.load(key + source, mask=from_token)
    old_keys = tl.load(key_cache + target, mask=from_cache)
    new_values = tl.load(value + source, mask=from_token)
    old_values = tl.load(value_cache + target, mask=from_cache)
    tl.store(key_out + target, tl.where(new, new_keys, old_keys), mask=inside)
    tl.store(value_out + target, tl.where(new, new_values, old_values), mask=inside)


def run(key, value, key_cache, value_cache, slot_mapping):
    pages, page, heads, depth = key_cache.shape
    tokens, slots, row = key.shape[0], pages * page, heads * depth
    key_out, value_out = torch.empty_like(key_cache), torch.empty_like(value_cache)
    owner = torch.empty((slots,), dtype=torch.int32, device=key.device)
    note[(triton.cdiv(tokens, NOTES),)](slot_mapping, owner, tokens, NOTES, num_warps=4)
    block = triton.next_power_of_2(row)
    group = max(1, ELEMENTS // block)
    write[(triton.cdiv(slots, group),)](
        key, value, key_cache, value_cache, slot_mapping, owner, key_out, value_out, tokens, slots, row, group, block,
        block == row and slots % group == 0, num_warps=WARPS,
    )  # fmt: skip
    return key_out, value_out
