"""The report over a program: what has a curve, which products are a chain, in bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "bound"))
from bound_programs import Build

from solar.mapper import attainable


def mlp(build: Build, between: str = "relu") -> str:
    x, v, w = build.input("x", 64, 32), build.input("v", 32, 128), build.input("w", 128, 16)
    hidden = build.einsum("mk,kn->mn", x, v)
    if between == "relu":
        hidden = build.relu(hidden)
    elif between == "cast":
        hidden = build.cast(build.cast(hidden, "float16"), "float32")
    elif between == "bias":
        hidden = build.map("add", hidden, build.input("bias", 128))
    elif between == "swish":
        hidden = build.map("mul", hidden, build.map("sigmoid", hidden))
    elif between == "residual":
        hidden = build.map("add", hidden, build.input("other", 64, 128))
    elif between == "softmax":
        hidden = build.softmax(hidden)
    elif between == "flat bias":
        hidden = build.map("add", build.view("reshape", hidden, [64 * 128]), build.input("other", 1))
        hidden = build.view("reshape", hidden, [64, 128])
    elif between == "turned twice":
        square = build.view("reshape", hidden, [64, 128])
        hidden = build.map("mul", square, build.transpose(build.transpose(square)))
    elif between == "reshape":
        hidden = build.view("reshape", build.relu(build.view("reshape", hidden, [8, 8, 128])), [64, 128])
    elif between == "flattened":
        hidden = build.view("reshape", hidden, [128, 64])
        return build.einsum("mn,np->mp", hidden, build.input("u", 64, 16))
    elif between == "transposed":
        return build.einsum("nm,np->mp", build.transpose(hidden), w)
    return build.einsum("mn,np->mp", hidden, w)


def test_a_program_of_two_products() -> None:
    build = Build()
    value = attainable(build.program(mlp(build)))
    assert json.loads(json.dumps(value)) == value
    assert value["schema"] == "solar.attainable-traffic.v1"
    assert "not a bound" in value["statement"]
    one, two = value["einsums"]
    assert one["op"] == "t0" and two["op"] == "t2"
    assert one["compulsory_bytes"] == 4 * (64 * 32 + 32 * 128 + 64 * 128) == one["curve"][-1][1]
    assert (one["knee_bytes"], one["tiles"], one["candidates"]) == (one["curve"][-1][0], "shared", "ceilings")
    assert one["curve"][0] == [12, 4 * (2 * 64 * 32 * 128 + 64 * 128)]
    (chain,) = value["chains"]
    assert chain["ops"] == ["t0", "t2"]
    assert chain["compulsory_bytes"] == 4 * (64 * 32 + 32 * 128 + 128 * 16 + 64 * 16) == chain["curve"][-1][1]
    assert chain["unfused_compulsory_bytes"] == chain["compulsory_bytes"] + 2 * 4 * 64 * 128
    assert chain["knee_bytes"] == chain["curve"][-1][0]
    assert value["unmapped"] == []


def test_each_operand_has_its_own_bytes() -> None:
    build = Build()
    x, w = build.input("x", 8, 8, dtype="float16"), build.input("w", 8, 8, dtype="int8")
    (entry,) = attainable(build.program(build.einsum("mk,kn->mn", x, w, dtype="float32")))["einsums"]
    assert entry["compulsory_bytes"] == 64 * (2 + 1 + 4)
    assert entry["curve"][0][0] == 2 + 1 + 4


@pytest.mark.parametrize(
    ("between", "joined"),
    [
        ("nothing", True), ("relu", True), ("cast", True), ("reshape", True), ("transposed", True), ("bias", True),
        ("swish", True), ("flat bias", True), ("turned twice", True), ("residual", False), ("softmax", False),
        ("flattened", False),
    ],
)  # fmt: skip
def test_what_may_stand_between_two_products(between: str, joined: bool) -> None:
    build = Build()
    value = attainable(build.program(mlp(build, between)))
    assert len(value["einsums"]) == 2
    assert bool(value["chains"]) == joined
    if joined:
        plain = Build()
        assert value["chains"][0]["curve"] == attainable(plain.program(mlp(plain)))["chains"][0]["curve"]


def test_a_matrix_times_its_transpose_in_between_is_no_function_of_one_place() -> None:
    build = Build()
    hidden = build.einsum("mk,kn->mn", build.input("x", 8, 8), build.input("v", 8, 8))
    hidden = build.map("mul", hidden, build.transpose(hidden))
    value = attainable(build.program(build.einsum("mn,np->mp", hidden, build.input("w", 8, 8))))
    assert (len(value["einsums"]), value["chains"]) == (2, [])


def test_an_intermediate_with_another_reader_is_no_chain() -> None:
    build = Build()
    x, w = build.input("x", 8, 8), build.input("w", 8, 8)
    hidden = build.einsum("mk,kn->mn", x, w)
    again = build.einsum("mn,np->mp", hidden, w)
    assert attainable(build.program(again))["chains"]
    assert not attainable(build.program(again, hidden))["chains"]
    assert not attainable(build.program(again, build.relu(hidden)))["chains"]
    square = Build()
    hidden = square.einsum("mk,kn->mn", square.input("x", 8, 8), square.input("w", 8, 8))
    assert not attainable(square.program(square.einsum("mn,np->mp", hidden, hidden)))["chains"]


def test_a_chain_of_three_is_cut() -> None:
    build = Build()
    x = build.input("x", 32, 8)
    for i, (k, n) in enumerate([(8, 64), (64, 8), (8, 32)]):
        x = build.einsum("mk,kn->mn", x, build.input(f"w{i}", k, n))
    (chain,) = attainable(build.program(x))["chains"]
    assert len(chain["ops"]) == 3
    first, second = 32 * 64, 32 * 8
    assert chain["unfused_compulsory_bytes"] - chain["compulsory_bytes"] == 2 * 4 * (first + second)
    # Two of the three are joined, the larger intermediate is the one saved.
    assert chain["curve"][-1][1] == chain["compulsory_bytes"] + 2 * 4 * second
    assert chain["knee_bytes"] is None


def test_given_capacities() -> None:
    build = Build()
    program = build.program(mlp(build))
    whole = attainable(program)["einsums"][0]
    capacities = [4, 12, 1000, 1 << 30]
    found = attainable(program, capacities=capacities)["einsums"][0]
    best = [min((moved for size, moved in whole["curve"] if size <= c), default=None) for c in capacities]
    assert found["curve"] == [list(pair) for pair in zip(capacities, best)]
    assert found["curve"][0] == [4, None]
    assert found["knee_bytes"] == whole["knee_bytes"]


def test_float32_4096_cubed_in_the_caches_of_one_card() -> None:
    """Beside what was measured there: 650, 533 and 373 MiB of memory traffic at 24, 40 and 50 MB, 2.69 GiB at 2 MB."""
    build = Build()
    product = build.einsum("mk,kn->mn", build.input("x", 4096, 4096), build.input("w", 4096, 4096))
    mib = 1 << 20
    (entry,) = attainable(build.program(product), capacities=[2 * mib, 24 * mib, 40 * mib, 50 * mib])["einsums"]
    assert [moved for _, moved in entry["curve"]] == [832 * mib, 320 * mib, 256 * mib, 256 * mib]
    assert 832 * mib == 4 * 218103808


def test_what_has_no_curve_says_why() -> None:
    build = Build()
    value = attainable(build.program(build.einsum("mk,kn->mn", build.input("x", 0, 4), build.input("w", 4, 3))))
    assert value["einsums"] == []
    assert value["unmapped"] == [{"ops": ["t0"], "reason": "ops.t0: empty, nothing moves"}]


def test_importing_the_mapper_needs_no_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None; sys.modules['torch'] = None; import solar.mapper"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
    code += "; from solar.mapper.tiles import Window, cover; cover(Window(0, 1, 1, 1, 0, 4), 3, 2, (3,), (2,))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True).returncode != 0
