"""Curves of single einsums: published points, brute force, properties."""

from __future__ import annotations

import math

import brute_force as bf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solar.einsum import Op, Program, Tensor
from solar.errors import MappingError
from solar.mapper import search
from solar.mapper.curves import Curve
from solar.mapper.space import Space, indexing, space
from solar.mapper.tiles import CANDIDATES, candidates

# 4096^3 in elements, perfect factors: capacity and accesses.
SQUARE_4096 = [
    (3, 137455730688), (5, 103095992320), (8, 68736253952), (14, 51556384768), (24, 34376515584), (44, 25786580992),
    (80, 17196646400), (152, 12901679104), (288, 8606711808), (560, 6459228160), (1088, 4311744512), (2144, 3238002688),
    (4224, 2164260864), (8384, 1627389952), (16640, 1090519040), (33152, 822083584), (66048, 553648128),
    (131840, 419430400), (263168, 285212672), (525824, 218103808), (1050624, 150994944), (2100224, 117440512),
    (4198400, 83886080), (8394752, 67108864), (16785408, 50331648),
]  # fmt: skip
# 4096^3, ragged tiles: capacity, what the best tiling in it uses, accesses.
RAGGED_4096 = [
    (1024, 1022, 4462739456), (4096, 4094, 2214592512), (16384, 16253, 1107296256), (65536, 62193, 570425344),
    (131072, 128281, 402653184), (262144, 234440, 301989888), (524288, 467855, 218103808), (1048576, 841524, 167772160),
    (2097152, 1868688, 117440512), (4194304, 2800982, 100663296), (8388608, 4198400, 83886080),
    (16777216, 8394752, 67108864),
]  # fmt: skip


def form_of(extents: dict[str, int], tensors: list[bf.Tensor]) -> Space:
    """The space of a nest, by way of an IR program of one einsum. A weight of 1 is a byte, of 4 is a float32."""
    dtypes = {1: "int8", 2: "float16", 4: "float32", 8: "int64"}
    shapes = [tuple(size for _, _, size in tensor.dims) for tensor in tensors]
    values = {f"x{i}": Tensor(shape, dtypes[t.weight]) for i, (shape, t) in enumerate(zip(shapes, tensors))}
    *reads, write = values
    maps = [
        [{"terms": [list(step) for step in steps], "offset": offset} for steps, offset, _ in tensor.dims]
        for tensor in tensors[:-1]
    ]
    output = [steps[0][0] for steps, _, _ in tensors[-1].dims]
    attributes = {"indices": dict(extents), "operands": maps, "output": output}
    op = Op("product", "einsum", "matmul", tuple(reads), (write,), attributes)
    inputs = tuple((name, name) for name in reads)
    program = Program("aten", values, inputs, (("out", write),), (op,))
    return space(*indexing(program, op))


def curve_of(
    extents: dict[str, int], tensors: list[bf.Tensor], kind: str = "ceilings", *, shared: bool = True
) -> Curve:
    return search.curve(form_of(extents, tensors), kind, shared=shared).bytes()


def product_of(
    m: int, n: int, k: int, weights: tuple[int, int, int] = (1, 1, 1)
) -> tuple[dict[str, int], list[bf.Tensor]]:
    extents = {"m": m, "n": n, "k": k}
    letters = zip(("mk", "kn", "mn"), weights, (False, False, True))
    return extents, [bf.plain(extents, text, weight, output) for text, weight, output in letters]


def convolution(
    stride: int, dilation: int, padding: int, *, y: int = 4, r: int = 3, c: int = 2, k: int = 2, size: int | None = None
) -> tuple[dict[str, int], list[bf.Tensor]]:
    """One spatial dimension; ``size`` of the input, or just what is reached less the padding."""
    extents = {"k": k, "c": c, "y": y, "r": r}
    reach = (y - 1) * stride + (r - 1) * dilation + 1 - 2 * padding
    row = ((("y", stride), ("r", dilation)), -padding, reach if size is None else size)
    data = bf.Tensor(((((("c", 1),)), 0, c), row))
    return extents, [data, bf.plain(extents, "kcr"), bf.plain(extents, "ky", output=True)]


# --- published points ------------------------------------------------------------------------------------------------


def test_the_curve_of_4096_cubed() -> None:
    assert curve_of(*product_of(4096, 4096, 4096), "divisors").points == SQUARE_4096


def test_points_of_256_cubed() -> None:
    curve = curve_of(*product_of(256, 256, 256), "divisors")
    for point in [(3, 33619968), (5, 25231360), (8, 16842752), (1088, 1114112), (4224, 589824), (16640, 327680)]:
        assert point in curve.points
    assert curve.points[-1] == (66048, 196608)


def test_ragged_tiles_of_4096_cubed() -> None:
    curve = curve_of(*product_of(4096, 4096, 4096))
    assert len(curve.points) == 413
    for capacity, used, accesses in RAGGED_4096:
        assert curve.at(capacity) == accesses
        assert (used, accesses) in curve.points


def test_tiles_of_ones_own_move_as_little_in_less() -> None:
    """1,057 instead of 1,088 elements for the same traffic, and one less where one element waits in a register."""
    curve = curve_of(*product_of(4096, 4096, 4096), "divisors", shared=False)
    assert (1056, 4311744512) in curve.points


def test_bytes_are_weighted_before_the_best_is_chosen() -> None:
    """An 8-byte operand is worth holding on to where a 1-byte one is not."""
    extents, tensors = product_of(6, 5, 6, (8, 1, 4))
    assert curve_of(extents, tensors).points == bf.shared_curve(extents, tensors)
    alike = curve_of(*product_of(6, 5, 6))
    assert [traffic / 4 for traffic in curve_of(*product_of(6, 5, 6, (4, 4, 4))).traffic] == list(alike.traffic)


# --- brute force -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("perfect", [True, False])
@pytest.mark.parametrize("shape", [(4, 4, 4), (5, 3, 4), (1, 6, 4), (2, 7, 1), (6, 1, 1)])
def test_a_product_is_what_all_loop_nests_give(shape: tuple[int, int, int], perfect: bool) -> None:
    extents, tensors = product_of(*shape)
    found = curve_of(extents, tensors, "divisors" if perfect else "ceilings")
    assert found.points == bf.shared_curve(extents, tensors, bf.factors if perfect else bf.every)


@pytest.mark.parametrize("perfect", [True, False])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding"), [(1, 1, 0), (1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 3, 1), (2, 2, 1)]
)
def test_a_convolution_is_what_all_loop_nests_give(stride: int, dilation: int, padding: int, perfect: bool) -> None:
    extents, tensors = convolution(stride, dilation, padding)
    found = curve_of(extents, tensors, "divisors" if perfect else "ceilings")
    assert found.points == bf.shared_curve(extents, tensors, bf.factors if perfect else bf.smallest)


def test_a_stride_beyond_the_kernel_has_no_halo() -> None:
    extents, tensors = convolution(3, 1, 0, r=2, size=12)
    form = form_of(extents, tensors)
    assert not any(access.windows for access in form.accesses)
    assert curve_of(extents, tensors).points == bf.shared_curve(extents, tensors)


def test_two_spatial_dimensions() -> None:
    extents = {"k": 2, "y": 3, "x": 3, "r": 2, "s": 2}
    data = bf.Tensor((((("y", 1), ("r", 1)), 0, 4), ((("x", 1), ("s", 1)), -1, 3)))
    tensors = [data, bf.plain(extents, "krs"), bf.plain(extents, "kyx", output=True)]
    assert curve_of(extents, tensors, "divisors").points == bf.shared_curve(extents, tensors, bf.factors)


def test_three_operands_and_one() -> None:
    extents = {"a": 3, "b": 2, "c": 2, "d": 3}
    three = [bf.plain(extents, text) for text in ("ab", "bc", "cd")] + [bf.plain(extents, "ad", output=True)]
    assert curve_of(extents, three).points == bf.shared_curve(extents, three)
    one = [bf.plain({"a": 3, "b": 4}, "ab"), bf.plain({"a": 3, "b": 4}, "a", output=True)]
    assert curve_of({"a": 3, "b": 4}, one).points == bf.shared_curve({"a": 3, "b": 4}, one)


def test_a_diagonal_is_read_where_it_is() -> None:
    extents = {"i": 4, "j": 3}
    diagonal = bf.Tensor((((("i", 1),), 0, 4), ((("i", 1),), 0, 4)))
    tensors = [diagonal, bf.plain(extents, "ij"), bf.plain(extents, "ij", output=True)]
    assert curve_of(extents, tensors).points == bf.shared_curve(extents, tensors)


def test_batch_and_merged_ranks_lose_nothing() -> None:
    extents = {"b": 2, "m": 2, "q": 2, "n": 3, "k": 2}
    letters = [("bmqk", False), ("bkn", False), ("bmqn", True)]
    tensors = [bf.plain(extents, text, 1, output) for text, output in letters]
    form = form_of(extents, tensors)
    assert (form.batch, sorted(form.extents)) == (2, [2, 3, 4])
    assert curve_of(extents, tensors, "divisors").points == bf.shared_curve(extents, tensors, bf.factors)


@pytest.mark.parametrize(
    ("extents", "tensors"),
    [product_of(2, 3, 2), product_of(4, 2, 2), product_of(3, 3, 1), convolution(1, 1, 0, y=5, r=3, k=1)],
)
def test_tiles_of_ones_own_are_attained_by_a_loop_nest(extents: dict[str, int], tensors: list[bf.Tensor]) -> None:
    found = curve_of(extents, tensors, shared=False)
    nests = bf.piece_curve(extents, tensors)
    for capacity, traffic in found.points:
        assert min(moved for size, moved in nests if size <= capacity) <= traffic
    for capacity, traffic in curve_of(extents, tensors).points:
        assert (found.at(capacity) or 0) <= traffic


@pytest.mark.parametrize("extent", [1, 2, 7, 12, 97, 360, 4096])
def test_candidates(extent: int) -> None:
    assert candidates(extent, "divisors") == tuple(t for t in range(1, extent + 1) if extent % t == 0)
    assert candidates(extent, "ceilings") == tuple(sorted({-(-extent // q) for q in range(1, extent + 1)}))


def test_unknown_candidates() -> None:
    with pytest.raises(ValueError, match="primes"):
        candidates(12, "primes")


# --- properties ------------------------------------------------------------------------------------------------------

EXTENTS = st.integers(1, 64)
WEIGHTS = st.sampled_from([1, 2, 4, 8])


@settings(max_examples=60, deadline=None)
@given(EXTENTS, EXTENTS, EXTENTS, st.sampled_from(CANDIDATES), st.booleans())
def test_a_curve_falls_to_compulsory_and_stays_above_the_known_bound(
    m: int, n: int, k: int, kind: str, shared: bool
) -> None:
    extents, tensors = product_of(m, n, k)
    curve = curve_of(extents, tensors, kind, shared=shared)
    assert list(curve.capacity) == sorted(set(curve.capacity))
    assert list(curve.traffic) == sorted(set(curve.traffic), reverse=True)
    assert curve.traffic[-1] == m * k + k * n + m * n == search.compulsory(form_of(extents, tensors)) // 8
    for capacity, traffic in curve.points:
        held = capacity if shared else capacity + 3  # the multiplier's registers
        assert traffic >= 2 * m * n * k / math.sqrt(held) - 2 * held


@settings(max_examples=60, deadline=None)
@given(EXTENTS, EXTENTS, EXTENTS, WEIGHTS, WEIGHTS, st.permutations("mnk"))
def test_names_and_operand_order_change_nothing(m: int, n: int, k: int, x: int, y: int, names: list[str]) -> None:
    extents, tensors = product_of(m, n, k, (x, y, 4))
    expected = curve_of(extents, tensors).points
    swapped = [tensors[1], tensors[0], tensors[2]]
    assert curve_of(dict(reversed(extents.items())), swapped).points == expected
    new = dict(zip("mnk", names))
    renamed = [
        bf.Tensor(tuple((tuple((new[i], s) for i, s in steps), o, z) for steps, o, z in t.dims), t.weight, t.output)
        for t in tensors
    ]
    assert curve_of({new[name]: extent for name, extent in extents.items()}, renamed).points == expected


@settings(max_examples=60, deadline=None)
@given(EXTENTS, EXTENTS, EXTENTS, st.integers(2, 9))
def test_ragged_tiles_are_no_worse_and_batch_is_linear(m: int, n: int, k: int, batch: int) -> None:
    extents, tensors = product_of(m, n, k)
    ragged, perfect = curve_of(extents, tensors), curve_of(extents, tensors, "divisors")
    assert all((ragged.at(capacity) or 0) <= traffic for capacity, traffic in perfect.points)
    both = {"b": batch, "h": 3, **extents}
    outer = ((("b", 1),), 0, batch), ((("h", 1),), 0, 3)
    repeated = [bf.Tensor((*outer, *t.dims), t.weight, t.output) for t in tensors]
    assert curve_of(both, repeated) == ragged.scaled(3 * batch)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.integers(2, 14), st.integers(1, 8),
    st.sampled_from(CANDIDATES),
)  # fmt: skip
def test_a_convolution_falls_to_what_it_touches(
    stride: int, dilation: int, padding: int, y: int, r: int, kind: str
) -> None:
    size = max(1, (y - 1) * stride + (r - 1) * dilation + 1 - 2 * padding)
    extents, tensors = convolution(stride, dilation, padding, y=y, r=r, size=size)
    whole = {name: range(extent) for name, extent in extents.items()}
    touched = sum(len(tensor.elements(whole)) for tensor in tensors)
    curve = curve_of(extents, tensors, kind)
    assert curve.traffic[-1] == touched == search.compulsory(form_of(extents, tensors)) // 8


# --- limits ----------------------------------------------------------------------------------------------------------


def test_what_has_no_tiles_is_refused() -> None:
    extents = {"a": 4, "b": 3}
    write = bf.plain(extents, "ab", output=True)
    backwards = bf.Tensor((((("a", -1),), 3, 4), ((("b", 1),), 0, 3)))
    with pytest.raises(MappingError, match="backwards"):
        form_of(extents, [backwards, write])
    wide = {"a": 4, "b": 3, "c": 3}
    three = bf.Tensor((((("a", 1), ("b", 1), ("c", 1)), 0, 8),))
    with pytest.raises(MappingError, match="more than two"):
        form_of(wide, [three, bf.plain(wide, "abc", output=True)])
    shared = bf.Tensor((((("a", 1),), 0, 4), ((("a", 1), ("b", 1)), -1, 5)))
    with pytest.raises(MappingError, match="shares an index"):
        form_of(extents, [shared, write])
    with pytest.raises(MappingError, match="empty"):
        form_of({"a": 0, "b": 3}, [bf.plain({"a": 0, "b": 3}, "ab"), bf.plain({"a": 0, "b": 3}, "ab", output=True)])


def test_too_many_tilings_fall_back_to_divisors_and_then_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    form = form_of(*product_of(360, 360, 360))
    assert search.best_curve(form)[1] == "ceilings"
    monkeypatch.setattr(search, "CELLS", search.cells(form, "divisors"))
    assert search.best_curve(form) == (search.curve(form, "divisors"), "divisors")
    monkeypatch.setattr(search, "CELLS", search.cells(form, "divisors") - 1)
    with pytest.raises(MappingError, match="tilings"):
        search.best_curve(form)


def test_traffic_beyond_64_bits_is_refused() -> None:
    with pytest.raises(MappingError, match="64 bits"):
        curve_of(*product_of(1 << 22, 1 << 22, 1 << 22))


def test_pieces_of_the_search_give_the_same_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    form = form_of(*convolution(1, 1, 1, y=14, k=6, c=4))
    whole = search.curve(form, "ceilings")
    search.curve.cache_clear()
    monkeypatch.setattr(search, "CHUNK", 7)
    assert search.curve(form, "ceilings") == whole
    search.curve.cache_clear()
