import torch


def run(key, value, key_cache, value_cache, slot_mapping):
    return written(key_cache, slot_mapping, key), written(value_cache, slot_mapping, value)


def written(cache, slot, rows):
    # Index -1 is the spare row at the end, which is cut off again: a view, still contiguous.
    lines = cache.flatten(0, 1)
    lines = torch.cat((lines, lines.new_zeros(1, *lines.shape[1:])))
    lines[slot] = rows
    return lines[:-1].unflatten(0, cache.shape[:2])


def custom_inputs(axes, device):
    # No slot twice: the result does not depend on the order of the writes.
    slots = torch.randperm(axes["P"] * axes["BS"])[: axes["N"]].clone()
    slots[15::16] = -1
    return {"slot_mapping": slots}
