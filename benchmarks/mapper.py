"""Time of the mapper, medians of several runs from empty caches: `python benchmarks/mapper.py [--json]`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

from solar.mapper import chains, search
from solar.mapper.orders import inner_orders, outer_orders
from solar.mapper.space import Indexing, Space, space
from solar.mapper.tiles import candidates

RUNS = 7


def product(m: int, n: int, k: int, names: str = "mkn") -> tuple[dict[str, int], list[Indexing]]:
    """[m, k] by [k, n] in float32."""
    rows, inner, columns = names
    reads = [Indexing(32, frozenset(rows + inner)), Indexing(32, frozenset(inner + columns))]
    return {rows: m, inner: k, columns: n}, [*reads, Indexing(32, frozenset(rows + columns), output=True)]


def convolution() -> Space:
    """64 channels of 56 x 56 to 64, 3 x 3, batch 16, padded, in float16."""
    extents = {"n": 16, "k": 64, "c": 64, "y": 56, "x": 56, "r": 3, "s": 3}
    rows = (("y", 1, "r", 1, -1, 56), ("x", 1, "s", 1, -1, 56))
    image = Indexing(16, frozenset("nc"), rows)
    return space(extents, [image, Indexing(16, frozenset("kcrs")), Indexing(16, frozenset("nkyx"), output=True)])


def chain() -> None:
    first, second = product(32768, 16384, 4096), product(32768, 4096, 16384, "mnp")
    chains.fused(chains.pair(first, second, 0, {"m": "m", "n": "n"}))


def median(run: Callable[[], object]) -> float:
    run()  # imports NumPy
    times = []
    for _ in range(RUNS):
        for cached in (search.curve, chains.fused, outer_orders, inner_orders, candidates):
            cached.cache_clear()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    square, image = space(*product(4096, 4096, 4096)), convolution()
    cases: list[tuple[str, float | None, Callable[[], object]]] = [
        ("4096^3, perfect factors", 0.020, lambda: search.curve(square, "divisors")),
        ("4096^3, ragged tiles", 1.0, lambda: search.curve(square, "ceilings")),
        ("convolution 16x64x56x56, 3x3, perfect factors", None, lambda: search.curve(image, "divisors")),
        ("convolution 16x64x56x56, 3x3, ragged tiles", None, lambda: search.curve(image, "ceilings")),
        ("32768x4096 -> 16384 -> 4096, ragged tiles", None, chain),
    ]
    rows = [(name, median(run), target) for name, target, run in cases]
    if "--json" in sys.argv[1:]:
        fields = ("case", "median_s", "target_s")
        print(json.dumps({"runs": RUNS, "cases": [dict(zip(fields, row)) for row in rows]}, indent=2))
        return
    for name, taken, target in rows:
        share = f"{taken / target:6.1%} of {target:g} s" if target else ""
        print(f"{name:<48} {taken * 1e3:9.2f} ms  {share}")


if __name__ == "__main__":
    main()
