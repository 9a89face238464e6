"""Time of the gfx12 emulator on one core: `python benchmarks/gfx12.py [--json]`.

Three Triton kernels, compiled for gfx1200 before anything is timed, run over whole launches in lock-step, and in
Triton's interpreter in the same run. Medians of several runs; the ratio is to the target, at most 1 where it is met.
`checked` is the same launch with strict waits, races and marks of what nothing wrote, on a smaller shape.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import json  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from solbench.gfx12.run import Options  # noqa: E402
from solbench.gfx12.triton_launch import launching  # noqa: E402

RUNS = 5
PLAIN = Options()
CHECKED = Options(poison="nan", strict_waits=True, races=True, uninitialised=True)


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * K + inner[None, :]
    right = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, at < n, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, (v / tl.sum(v, 0)).to(y.dtype.element_ty), at < n)


@triton.jit
def attention(q, k, v, o, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    base = tl.program_id(1) * T * D
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + inner[None, :])
    largest = tl.full((BM,), float("-inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + base + columns[None, :] * D + inner[:, None])
        values = tl.load(v + base + columns[:, None] * D + inner[None, :])
        scores = tl.dot(query, keys) * scale
        larger = tl.maximum(largest, tl.max(scores, 1))
        scores, shrink = tl.exp2(scores - larger[:, None]), tl.exp2(largest - larger)
        weight = weight * shrink + tl.sum(scores, 1)
        total = tl.dot(scores.to(values.dtype), values, total * shrink[:, None])
        largest = larger
    tl.store(o + base + rows[:, None] * D + inner[None, :], (total / weight[:, None]).to(o.dtype.element_ty))


@dataclass(frozen=True)
class Case:
    """``call(kernel)`` launches it once; ``target_s`` for the whole launch."""

    name: str
    kernel: Any
    call: Callable[[Any], object]
    options: Options
    target_s: float | None


def products(n: int) -> Callable[[Any], object]:
    a, b, c = torch.randn(n, n).half(), torch.randn(n, n).half(), torch.zeros(n, n)
    return lambda kernel: kernel[(n // 64, n // 64)](a, b, c, n, n, n, BM=64, BN=64, BK=32)


def softmaxes(rows: int, n: int) -> Callable[[Any], object]:
    x = torch.randn(rows, n).bfloat16()
    y = torch.zeros_like(x)
    return lambda kernel: kernel[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))


def attentions(heads: int, length: int) -> Callable[[Any], object]:
    q, k, v = (torch.randn(heads, length, 64).half() for _ in range(3))
    o = torch.zeros_like(q)
    return lambda kernel: kernel[(length // 64, heads)](q, k, v, o, length, 0.18, D=64, BM=64, BN=64)


def median(run: Callable[[], object]) -> float:
    run()  # compiles
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def interpreted() -> dict[str, float]:
    """Seconds of one launch in Triton's interpreter by case. It has to be on before Triton is imported."""
    child = [sys.executable, "-W", "ignore", __file__, "--interpreter"]
    done = subprocess.run(
        child, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def interpret(cases: Sequence[Case]) -> None:
    """In the child: print those seconds."""
    taken = {}
    for case in cases:
        if case.options is PLAIN:
            begin = time.perf_counter()
            case.call(case.kernel)
            taken[case.name] = time.perf_counter() - begin
    print(json.dumps(taken))


def measured(case: Case) -> dict[str, Any]:
    with launching(case.options) as launches:
        taken = median(lambda: case.call(case.kernel))
    outcome = launches.runs[-1].outcome
    assert outcome.clean
    return {
        "case": case.name, "median_s": taken, "target_s": case.target_s, "runs": RUNS,
        "wave_instructions": outcome.instructions,
    }  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = [
        Case("product f16 1024^3", product, products(1024), PLAIN, 1.0),
        Case("softmax bf16 1024x4096", softmax, softmaxes(1024, 4096), PLAIN, 0.4),
        Case("attention f16 8x512x64", attention, attentions(8, 512), PLAIN, 0.3),
        Case("product f16 256^3, checked", product, products(256), CHECKED, None),
        Case("softmax bf16 64x4096, checked", softmax, softmaxes(64, 4096), CHECKED, None),
        Case("attention f16 2x256x64, checked", attention, attentions(2, 256), CHECKED, None),
    ]
    if "--interpreter" in sys.argv[1:]:
        interpret(cases)
        return
    beside = interpreted()
    rows = [{**measured(case), "interpreter_s": beside.get(case.name)} for case in cases]
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows, indent=2))
        return
    heads = ("launch", "s", "target", "ratio", "interpreter s", "times faster", "M wave-instr/s")
    print("{:<34} {:>8} {:>7} {:>6} {:>14} {:>13} {:>15}".format(*heads))
    for row in rows:
        taken, target, other = row["median_s"], row["target_s"], row["interpreter_s"]
        share = f"{target:>7.2f} {taken / target:>6.2f}" if target else f"{'':>7} {'':>6}"
        interpreter = f"{other:>14.2f} {other / taken:>13.1f}" if other else f"{'':>14} {'':>13}"
        print(f"{row['case']:<34} {taken:>8.3f} {share} {interpreter} {row['wave_instructions'] / taken / 1e6:>15.1f}")


if __name__ == "__main__":
    main()
