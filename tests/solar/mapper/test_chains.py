"""Chains of products: published points, brute force, cuts, and how a program's chains are found."""

from __future__ import annotations

import brute_force as bf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solar.errors import MappingError
from solar.mapper import chains, search
from solar.mapper.curves import Curve, both, either
from solar.mapper.space import Indexing

# 32768 x 4096 -> 16384 -> 4096 in elements: capacity and accesses.
POINTS = [
    (1057, 275548995584), (65793, 35030827008), (262657, 17850957824), (1049601, 9261023232), (4196353, 4966055936),
    (8390657, 3422552064), (16781314, 2348810240), (33558528, 1342177280), (67112960, 1207959552),
    (67117056, 805306368), (134225920, 402653184),
]  # fmt: skip


def product_of(
    extents: dict[str, int], text: str, weights: tuple[int, int, int]
) -> tuple[dict[str, int], list[Indexing]]:
    left, output = text.split("->")
    letters = [*left.split(","), output]
    used = {name: extent for name, extent in extents.items() if name in text and extent > 1}
    accesses = [
        Indexing(weight, frozenset(names) & used.keys(), output=i == 2)
        for i, (names, weight) in enumerate(zip(letters, weights))
    ]
    return used, accesses


def chain_of(m: int, k: int, n: int, p: int, batch: int = 1, weights: tuple[int, ...] = (1, 1, 1, 1, 1)) -> chains.Pair:
    extents = {"b": batch, "m": m, "k": k, "n": n, "p": p}
    first = product_of(extents, "bmk,bkn->bmn", weights[:3])
    second = product_of(extents, "bmn,bnp->bmp", weights[2:])
    return chains.pair(first, second, 0, {"b": "b", "m": "m", "n": "n"})


def test_the_published_chain() -> None:
    chain = chain_of(32768, 4096, 16384, 4096)
    curve, kind = chains.fused(chain)
    assert kind == "ceilings"
    for capacity, accesses in POINTS:
        found = curve.at(capacity)
        assert found is not None and found <= accesses, capacity
    assert curve.points[-1] == POINTS[-1]
    assert curve.traffic[-1] == chains.compulsory(chain) == 134217728 + 67108864 + 67108864 + 134217728
    unfused = sum(search.curve(form, "ceilings", shared=False).traffic[-1] for form in (chain.first, chain.second))
    assert unfused == 1476395008


@pytest.mark.parametrize("shape", [(2, 3, 2, 2), (3, 2, 2, 3), (4, 1, 3, 2), (2, 2, 4, 1), (1, 3, 4, 3)])
def test_tiled_fusion_is_what_all_schedules_give(shape: tuple[int, int, int, int]) -> None:
    m, k, n, p = shape
    chain = chain_of(*shape)
    expected = bf.fused_curve({"m": m, "k": k, "n": n, "p": p})
    assert chains._tiled(chain, "ceilings").points == expected
    whole = chains.fused(chain)[0]
    assert all((whole.at(size) or 0) <= moved for size, moved in expected)


@pytest.mark.parametrize("shape", [(2, 3, 2, 2), (3, 2, 2, 3)])
def test_untiled_fusion_is_attained_by_loop_nests(shape: tuple[int, int, int, int]) -> None:
    m, k, n, p = shape
    first, second = {"m": m, "n": n, "k": k}, {"m": m, "n": n, "p": p}
    one = [bf.plain(first, "mk"), bf.plain(first, "kn"), bf.plain(first, "mn", weight=0, output=True)]
    two = [bf.plain(second, "mn", weight=0), bf.plain(second, "np"), bf.plain(second, "mp", output=True)]
    nests = [Curve(*zip(*bf.piece_curve(e, t))) for e, t in ((first, one), (second, two))]
    attained = both(*nests).shifted(m * n)
    for capacity, traffic in chains._untiled(chain_of(*shape), "ceilings").points:
        assert (attained.at(capacity) or 0) <= traffic


SIZE = st.integers(1, 40)


@settings(max_examples=40, deadline=None)
@given(SIZE, SIZE, SIZE, SIZE, st.integers(2, 5))
def test_a_chain_falls_to_its_ends_and_batch_is_linear(m: int, k: int, n: int, p: int, batch: int) -> None:
    chain = chain_of(m, k, n, p)
    curve, _ = chains.fused(chain)
    assert list(curve.capacity) == sorted(set(curve.capacity))
    assert list(curve.traffic) == sorted(set(curve.traffic), reverse=True)
    assert curve.traffic[-1] == m * k + k * n + n * p + m * p == chains.compulsory(chain)
    singles = [search.curve(form, "ceilings", shared=False) for form in (chain.first, chain.second)]
    assert all((curve.at(size) or 0) <= moved for size, moved in both(*singles).points)
    assert chains.fused(chain_of(m, k, n, p, batch))[0] == curve.scaled(batch)


@settings(max_examples=40, deadline=None)
@given(SIZE, SIZE, SIZE, SIZE, st.tuples(*[st.sampled_from([1, 2, 4])] * 5))
def test_a_transposed_chain_is_the_same(m: int, k: int, n: int, p: int, weights: tuple[int, ...]) -> None:
    """(A B) C has the curve of C' (B' A')."""
    a, b, i, c, d = weights
    extents = {"m": m, "k": k, "n": n, "p": p}
    first = product_of(extents, "nk,km->nm", (b, a, i))
    second = product_of(extents, "pn,nm->pm", (c, i, d))
    turned = chains.pair(first, second, 1, {"n": "n", "m": "m"})
    assert chains.fused(turned)[0] == chains.fused(chain_of(m, k, n, p, weights=weights))[0]


def test_the_intermediate_dtype_counts() -> None:
    narrow = chains.fused(chain_of(64, 64, 64, 64, weights=(1, 1, 1, 1, 1)))[0]
    wide = chains.fused(chain_of(64, 64, 64, 64, weights=(1, 1, 4, 1, 1)))[0]
    assert wide.traffic[-1] == narrow.traffic[-1]
    assert wide.capacity[-1] > narrow.capacity[-1]


def test_a_chain_is_cut_where_it_costs_least() -> None:
    dear, cheap = Curve((1, 10), (100, 60)), Curve((1,), (10,))
    saves = Curve((10,), (50,))
    # Two products: apart or together.
    assert chains.segmented([dear, cheap], [saves]).points == [(1, 110), (10, 50)]
    assert chains.segmented([dear, cheap], [None]).points == [(1, 110), (10, 70)]
    # Three: the middle one joins the neighbour that gains more.
    better = Curve((10,), (20,))
    assert chains.segmented([dear, cheap, dear], [saves, better]).points[-1] == (10, 60 + 20)
    assert chains.segmented([dear, cheap, dear], [better, saves]).points[-1] == (10, 20 + 60)
    # Four: two pairs.
    four = chains.segmented([dear, cheap, cheap, dear], [better, None, better])
    assert four.points[-1] == (10, 40)


def test_curves_add_and_compare_as_step_functions() -> None:
    one, two = Curve((2, 8), (20, 5)), Curve((4, 6), (7, 3))
    assert both(one, two).points == [(4, 27), (6, 23), (8, 8)]
    assert either(one, two).points == [(2, 20), (4, 7), (6, 3)]
    assert (one.at(1), one.at(2), one.at(7), one.at(9)) == (None, 20, 20, 5)
    assert Curve((8, 9, 24), (64, 60, 8)).bytes().points == [(1, 8), (3, 1)]


def test_what_cannot_be_joined_is_refused() -> None:
    extents = {"m": 4, "k": 3, "n": 5, "p": 2}
    first = product_of(extents, "mk,kn->mn", (1, 1, 1))
    second = product_of(extents, "mn,np->mp", (1, 1, 1))
    same = {"m": "m", "n": "n"}
    chains.pair(first, second, 0, same)
    with pytest.raises(MappingError, match="two operands"):
        chains.pair((first[0], first[1][1:]), second, 0, same)
    with pytest.raises(MappingError, match="as the first one writes it"):
        chains.pair(first, second, 0, {"m": "m"})
    with pytest.raises(MappingError, match="a part"):
        chains.pair(first, ({**second[0], "n": 4}, second[1]), 0, same)
    window = [Indexing(1, frozenset("m"), (("k", 1, "n", 1, 0, 7),)), *first[1][1:]]
    with pytest.raises(MappingError, match="window"):
        chains.pair((first[0], window), second, 0, same)


def test_too_many_tilings_of_a_pair_use_divisors(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_of(36, 12, 60, 24)
    monkeypatch.setattr(chains, "CELLS", chains._cells(chain, "divisors"))
    chains.fused.cache_clear()
    curve, kind = chains.fused(chain)
    assert (kind, curve.traffic[-1]) == ("divisors", chains.compulsory(chain))
    monkeypatch.setattr(chains, "CELLS", chains._cells(chain, "divisors") - 1)
    chains.fused.cache_clear()
    with pytest.raises(MappingError, match="fused pair"):
        chains.fused(chain)
