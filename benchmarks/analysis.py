"""Time and memory of the analysis: `python benchmarks/analysis.py [--problem NAME] [--repeat N]`.

Every workload of AMD_AKA: extract, convert and bound at its own sizes, then attestation at reduced ones; and, in a
process of its own, the peak memory of analysing a workload whose tensors would take 16 GiB. Prints a table; the ratio
is to the target, at most 1 where it is met.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = "gfx1200"

# A square product of 16-bit floats: inputs and output of 16 GiB together.
LARGE = """
import solar
from solar.graph import Input
side = 53_509
graph = solar.extract_graph(
    lambda a, b: (a @ b).relu().softmax(-1), {name: Input((side, side), "bfloat16") for name in "ab"}
)
found = solar.bound_program(solar.convert_graph(graph), solar.load_machine("gfx1200"))
assert found["memory"]["declared_bytes"] >= 0.99 * 2**34
"""


def peak_bytes(code: str) -> int:
    """Largest resident size of a Python process that runs ``code``."""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"analysis of the large workload failed with status {status}")
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def timed(run: Callable[[], Any], repeat: int) -> float:
    """Median time of a few runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def workloads(only: str | None) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Name, analysis, and conversion with attestation, of each workload."""
    import solar
    from solbench import bounds
    from solbench.corpus.load import load_problem
    from solbench.corpus.reference import load_reference

    machine = bounds.machine_for(TARGET)
    found = []
    for file in sorted((ROOT / "problems" / "AMD_AKA").glob("*/*/problem.yaml")):
        if only not in (None, file.parent.name):
            continue
        problem = load_problem(file.parent, corpus="AMD_AKA")
        for workload in problem.workloads:

            def analyse(problem: Any = problem, workload: Any = workload) -> None:
                result = bounds.bounds_for(problem, workload, machine)
                if isinstance(result, str):
                    raise SystemExit(f"{problem.key} {workload.uuid}: {result}")

            def attest(problem: Any = problem, workload: Any = workload) -> None:
                definition = problem.definition
                inputs = bounds.solar_inputs(definition, workload, workload.validate_against(definition, problem.key))
                graph = solar.extract_graph(
                    load_reference(definition), inputs, outputs=list(definition.outputs), in_place=definition.in_place
                )
                bounds.attested(solar.convert_graph(graph), definition, workload)

            found.append((workload.uuid, analyse, attest))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", help="only this one")
    parser.add_argument("--repeat", type=int, default=3, help="runs a workload, of which the median counts")
    options = parser.parse_args()
    # First, for a child inherits the peak of the process that it was forked from.
    large = peak_bytes(LARGE)
    listed = workloads(options.problem)
    if not listed:
        raise SystemExit(f"no problem {options.problem!r} in AMD_AKA")
    listed[0][1]()  # imports
    analysis = {name: timed(analyse, options.repeat) for name, analyse, _ in listed}
    attestation = {name: timed(attest, 1) for name, _, attest in listed}
    slowest, longest = max(analysis, key=analysis.__getitem__), max(attestation, key=attestation.__getitem__)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = [
        ("extract, convert, bound: median", len(analysis), statistics.median(analysis.values()), 0.05, "s"),
        (f"extract, convert, bound: slowest ({slowest})", len(analysis), analysis[slowest], 1.0, "s"),
        ("attestation: median", len(attestation), statistics.median(attestation.values()), 1.0, "s"),
        (f"attestation: slowest ({longest})", len(attestation), attestation[longest], None, "s"),
        ("peak memory, tensors of 16 GiB", 1, large / 2**30, 1.0, "GiB"),
        ("peak memory of this process", 1, own / 2**20, None, "GiB"),
    ]
    print(f"{'what':<78} {'n':>4} {'value':>10} {'target':>8} {'ratio':>6}")
    for what, count, value, target, unit in rows:
        aim, ratio = ("", "") if target is None else (f"{target:g} {unit}", f"{value / target:.2f}")
        print(f"{what:<78} {count:>4} {value:>6.3f} {unit:<3} {aim:>8} {ratio:>6}")


if __name__ == "__main__":
    main()
