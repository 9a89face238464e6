"""Bytes that must move: by region, once, in each tensor's own dtype."""

from __future__ import annotations

import pytest
from bound_programs import Build, machine

from solar.bound import bound
from solar.einsum import Program
from solar.hardware import Machine, load

GFX1200 = load("gfx1200")


def memory(program: Program) -> dict[str, int]:
    return bound(program, GFX1200)["memory"]


def live(program: Program) -> int:
    return memory(program)["live_bytes"]


def read(program: Program, name: str) -> int:
    return next(t["live_bytes"] for t in bound(program, GFX1200)["tensors"] if t["name"] == name)


def test_overlapping_slices_count_their_union() -> None:
    b = Build()
    x = b.input("x", 64, 128)
    total = b.map("add", b.slice(x, 0, 0, 48), b.slice(x, 0, 16, 64))
    assert read(b.program(total), "x") == 64 * 128 * 4


def test_interleaved_halves_count_once() -> None:
    b = Build()
    x = b.input("x", 4, 64)
    total = b.map("mul", b.slice(x, 1, 0, 64, 2), b.slice(x, 1, 1, 64, 2))
    assert read(b.program(total), "x") == 4 * 64 * 4


def test_repeated_indices_read_one_row_once() -> None:
    b = Build()
    table = b.input("table", 1000, 8)
    index = b.input("index", 4, dtype="int64", values=(7, 7, 7, 9))
    assert read(b.program(b.op("index", "index_select", [table, index], [4, 8], dim=0)), "table") == 2 * 8 * 4


def test_unknown_indices_may_all_name_one_row() -> None:
    b = Build()
    table = b.input("table", 100_000, 128)
    index = b.input("index", 4, dtype="int64")
    program = b.program(b.op("index", "embedding", [table, index], [4, 128]))
    assert read(program, "table") == 512
    assert any("unknown indices" in text for text in bound(program, GFX1200)["looseness"])


def test_one_target_a_row_needs_one_element_a_row() -> None:
    b = Build()
    scores = b.input("scores", 64, 100)
    target = b.input("target", 64, 1, dtype="int64")
    assert read(b.program(b.op("index", "gather", [scores, target], [64, 1], dim=1)), "scores") == 64 * 4


def test_a_paged_cache_counts_the_pages_of_its_table() -> None:
    b = Build()
    cache = b.input("cache", 10_000, 16, 32, dtype="bfloat16")
    table = b.input("table", 2, 3, dtype="int32", values=(9, 800, 3, 77, 9, 5))
    pages = b.op("index", "index", [cache, table], [2, 3, 16, 32], dims=[0])
    assert read(b.program(b.relu(b.view("reshape", pages, [2, 48, 32]))), "cache") == 5 * 16 * 32 * 2


def test_two_known_index_tensors_name_single_elements() -> None:
    b = Build()
    x = b.input("x", 50, 60)
    rows = b.input("rows", 3, dtype="int64", values=(1, 1, 4))
    columns = b.input("columns", 3, dtype="int64", values=(2, 2, 9))
    assert read(b.program(b.op("index", "index", [x, rows, columns], [3], dims=[0, 1])), "x") == 2 * 4


def test_an_output_that_is_an_input_is_copied() -> None:
    b = Build()
    x = b.input("x", 32)
    assert live(b.program(x)) == 256


def test_dead_code_is_free() -> None:
    b = Build()
    x, y = b.input("x", 64, 64), b.input("y", 64, 64)
    b.einsum("ij,jk->ik", x, y)
    found = bound(b.program(b.relu(x)), GFX1200)
    assert (found["macs"], found["memory"]["live_read_bytes"]) == (0, 64 * 64 * 4)


def test_a_triangle_reads_half() -> None:
    b = Build()
    x = b.input("x", 100, 100)
    program = b.program(b.map("tril", x, diagonal=0))
    assert memory(program)["live_read_bytes"] == 100 * 101 // 2 * 4
    assert memory(program)["live_write_bytes"] == 100 * 100 * 4


def test_a_diagonal_reads_its_elements() -> None:
    b = Build()
    x = b.input("x", 100, 120)
    assert read(b.program(b.view("diagonal", x, [100], offset=5, dim1=0, dim2=1)), "x") == 100 * 4


@pytest.mark.parametrize(("start", "stop", "expected"), [(60, 70, (4, 6)), (0, 4, (4, 0)), (100, 128, (0, 28))])
def test_a_slice_of_a_concatenation_reads_the_pieces_it_shows(start: int, stop: int, expected: tuple[int, int]) -> None:
    b = Build()
    x, y = b.input("x", 64, 8), b.input("y", 64, 8)
    joined = b.op("copy", "cat", [x, y], [128, 8], dim=0)
    program = b.program(b.relu(b.slice(joined, 0, start, stop)))
    assert (read(program, "x"), read(program, "y")) == tuple(rows * 8 * 4 for rows in expected)


def test_padding_is_not_read() -> None:
    b = Build()
    x, w = b.input("x", 32, 64), b.input("w", 128, 16)
    padded = b.op("copy", "pad", [x], [32, 128], before=[0, 0], after=[0, 64], value=0)
    program = b.program(b.einsum("ij,jk->ik", padded, w))
    assert read(program, "w") == 64 * 16 * 4


def test_rows_that_meet_only_zeros_are_not_read() -> None:
    b = Build()
    a, w = b.input("a", 16, 64), b.input("w", 64, 8)
    low = b.map("tril", a, diagonal=0)
    program = b.program(b.einsum("ij,jk->ik", low, w))
    assert read(program, "w") == 16 * 8 * 4


def test_an_in_place_write_touches_its_rows_only() -> None:
    b = Build()
    cache, rows = b.input("cache", 1000, 64), b.input("rows", 4, 64)
    result = b.op("copy", "slice_scatter", [cache, rows], [1000, 64], dim=0, start=10, stop=14, step=1)
    found = memory(b.program(result, aliases={"out0": "cache"}))
    assert (found["live_read_bytes"], found["live_write_bytes"]) == (4 * 64 * 4, 4 * 64 * 4)
    fresh = memory(b.program(result))
    assert (fresh["live_read_bytes"], fresh["live_write_bytes"]) == (1000 * 64 * 4, 1000 * 64 * 4)


def test_an_in_place_update_of_everything_writes_everything() -> None:
    b = Build()
    x = b.input("x", 1000)
    found = memory(b.program(b.relu(x), aliases={"out0": "x"}))
    assert (found["live_read_bytes"], found["live_write_bytes"]) == (4000, 4000)


def test_a_mask_that_is_the_same_in_every_draw_is_not_read() -> None:
    b = Build()
    x, mask = b.input("x", 4, 100, 100), b.input("mask", 200, 200)
    corner = b.slice(b.slice(mask, 0, 0, 100), 1, 0, 100)
    hidden = b.map("eq", corner, dtype="bool", scalars={"1": 0})
    result = b.map("where", hidden, x, dtype="float32", scalars={"1": "-inf"})
    assert read(b.program(result), "mask") == 100 * 100 * 4
    b.structures["mask"] = "lower_triangular"
    program = b.program(result)
    assert read(program, "mask") == 0
    assert read(program, "x") == 4 * (100 * 101 // 2) * 4


def test_stores_may_stay_in_a_cache_where_the_model_says_so() -> None:
    b = Build()
    x = b.input("x", 1000)
    program = b.program(b.relu(x))
    plain = bound(program, Machine.from_dict(machine(bandwidth=1e9)))["memory"]["seconds"]
    some = bound(program, Machine.from_dict(machine(bandwidth=1e9, absorbed=1000)))["memory"]["seconds"]
    every = bound(program, Machine.from_dict(machine(bandwidth=1e9, absorbed=1 << 20)))["memory"]["seconds"]
    assert (plain, some, every) == (8000 / 1e9, 7000 / 1e9, 4000 / 1e9)


def test_something_that_moves_takes_time() -> None:
    b = Build()
    zeros = b.op("create", "full", [], [16], "float32", value=0)
    assert bound(b.program(zeros), Machine.from_dict(machine(absorbed=1 << 20)))["t_sol_s"] > 0
    b = Build()
    assert 0 < bound(b.program(b.relu(b.input("x", 1))), GFX1200)["t_sol_s"] < 1e-9


def test_a_pair_of_four_bit_floats_is_one_byte() -> None:
    b = Build()
    x = b.input("x", 5, dtype="float4_e2m1fn_x2")
    assert read(b.program(b.view("bitcast", x, [5], dtype="uint8")), "x") == 5


def test_a_scatter_into_fresh_memory_writes_all_and_reads_what_stays() -> None:
    b = Build()
    data, index, rows = (
        b.input("data", 100, 8),
        b.input("index", 3, dtype="int64", values=(1, 5, 1)),
        b.input("rows", 3, 8),
    )
    result = b.op("index", "index_put", [data, index, rows], [100, 8], dims=[0], accumulate=False)
    assert read(b.program(result), "data") == 98 * 8 * 4
    added = b.op("index", "index_put", [data, index, rows], [100, 8], dims=[0], accumulate=True)
    assert read(b.program(added), "data") == 100 * 8 * 4


def test_rows_and_columns_of_a_grid_are_named_one_by_one() -> None:
    b = Build()
    x = b.input("x", 2, 16, 16)
    rows = b.input("rows", 4, 1, dtype="int64", values=(0, 0, 3, 5))
    columns = b.input("columns", 3, dtype="int64", values=(1, 2, 1))
    made = b.op("index", "index", [x, rows, columns], [2, 4, 3], dims=[1, 2])
    assert read(b.program(made), "x") == 2 * 3 * 2 * 4


def test_a_repeated_operation_keeps_its_known_contents() -> None:
    b = Build()
    x = b.input("x", 100)
    steps = [b.op("create", "arange", [], [4], "int64", start=0, step=1) for _ in range(2)]
    doubled = [b.map("mul", step, scalars={"1": 2}) for step in steps]
    b.values[doubled[1]] = (0, 2, 4, 6)
    made = [b.op("index", "index_select", [x, index], [4], dim=0) for index in doubled]
    assert read(b.program(b.map("add", *made)), "x") == 16


def test_nothing_is_read_for_an_empty_sum() -> None:
    b = Build()
    x = b.input("x", 16, 8)
    found = memory(b.program(b.sum(b.slice(x, 0, 0, 0), [0])))
    assert (found["live_read_bytes"], found["live_write_bytes"]) == (0, 32)


def test_an_addend_that_a_mean_takes_out_is_not_read() -> None:
    def bias_bytes(*, centred: bool, also_read: bool = False) -> int:
        b = Build()
        x, bias = b.input("x", 4, 8, 16), b.input("bias", 8, 1)
        shifted = b.map("add", x, bias)
        flat = b.view("reshape", shifted, [32, 16])
        mean = b.map("div", b.sum(flat, [1], keepdim=True), scalars={"1": 16 if centred else 15})
        outputs = [b.map("sub", flat, mean), *([b.relu(shifted)] if also_read else [])]
        return read(b.program(*outputs), "bias")

    assert bias_bytes(centred=True) == 0
    assert bias_bytes(centred=False) == 32
    assert bias_bytes(centred=True, also_read=True) == 32
