"""Time and memory of the analysis: `python benchmarks/analysis.py [--corpus NAME] [--problem NAME] [--repeat N]`.

Every workload of AMD_AKA and of LLM_CORE at 16 GiB: extract, convert and bound at its own sizes, then attestation at
small ones, where workloads that have the same small instance share its replay; and, in a process of its own, the peak
memory of analysing a workload whose tensors would take 16 GiB. Prints a table; the ratio is to the target, at most 1
where it is met.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solar.hardware import Machine
    from solbench.model.definition import Definition
    from solbench.model.workload import Workload

ROOT = Path(__file__).resolve().parent.parent
TARGET = "gfx1200"
CORPORA = ("AMD_AKA", "LLM_CORE")

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


def problems(corpus: str, only: str | None) -> list[tuple[Definition, Sequence[Workload]]]:
    """Definitions and workloads: of LLM_CORE those that its rules give for the target's 16 GiB."""
    from solbench.corpus.definitions import load_template
    from solbench.corpus.llm_core.generate import generate
    from solbench.corpus.llm_core.rules import load_rules
    from solbench.corpus.llm_core.view import generated_workloads
    from solbench.corpus.load import load_problem

    folder = ROOT / "problems" / corpus
    if corpus != "LLM_CORE":
        files = sorted(folder.glob("*/*/problem.yaml"))
        loaded = [load_problem(file.parent, corpus=corpus) for file in files if only in (None, file.parent.name)]
        return [(problem.definition, problem.workloads) for problem in loaded]
    rules = load_rules(folder)
    found: list[tuple[Definition, Sequence[Workload]]] = []
    for decision in generate(rules, TARGET, 16).generated:
        if only in (None, decision.name):
            template = load_template(folder / decision.family / decision.name, corpus=corpus)
            found.append((template.definition, generated_workloads(decision, rules.rules[decision.name], template)))
    return found


def measured(definition: Definition, workload: Workload, machine: Machine, repeat: int) -> tuple[float, float]:
    """Seconds of extraction, conversion and bound; seconds of the attestation of what they gave."""
    import solar
    from solbench import bounds
    from solbench.corpus.reference import load_reference

    inputs = bounds.solar_inputs(definition, workload, workload.validate_against(definition, definition.name))
    programs = []

    def analyse() -> None:
        graph = solar.extract_graph(
            load_reference(definition), inputs, outputs=list(definition.outputs), in_place=definition.in_place
        )
        program = solar.convert_graph(graph)
        solar.bound_program(program, machine, rejected_formats=workload.rejected_formats)
        programs.append(program)

    analysis = timed(analyse, repeat)
    return analysis, timed(lambda: bounds.attested(programs[0], definition, workload), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=CORPORA, help="only this one")
    parser.add_argument("--problem", help="only this one")
    parser.add_argument("--repeat", type=int, default=3, help="runs a workload, of which the median counts")
    options = parser.parse_args()
    # First, for a child inherits the peak of the process that it was forked from.
    rows = [("peak memory, tensors of 16 GiB", 1, peak_bytes(LARGE) / 2**30, 1.0, "GiB")]

    from solbench.bounds import machine_for

    machine = machine_for(TARGET)
    for corpus in CORPORA if options.corpus is None else (options.corpus,):
        cases = {w.uuid: (d, w) for d, listed in problems(corpus, options.problem) for w in listed}
        if not cases:
            continue
        measured(*next(iter(cases.values())), machine, 1)  # imports
        seconds = {name: measured(*case, machine, options.repeat) for name, case in cases.items()}
        for place, what, medians, most in ((0, "extract, convert, bound", 0.05, 1.0), (1, "attestation", 1.0, 5.0)):
            found = {name: pair[place] for name, pair in seconds.items()}
            slowest = max(found, key=found.__getitem__)
            rows += [
                (f"{corpus}: {what}: median", len(found), statistics.median(found.values()), medians, "s"),
                (f"{corpus}: {what}: slowest ({slowest})", 1, found[slowest], most, "s"),
                (f"{corpus}: {what}: all", len(found), sum(found.values()), None, "s"),
            ]
    if len(rows) == 1:
        raise SystemExit(f"no problem {options.problem!r}")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows.append(("peak memory of this process", 1, own / 2**20, None, "GiB"))
    print(f"{'what':<98} {'n':>4} {'value':>11} {'target':>8} {'ratio':>6}")
    for what, count, value, target, unit in rows:
        aim, ratio = ("", "") if target is None else (f"{target:g} {unit}", f"{value / target:.2f}")
        print(f"{what:<98} {count:>4} {value:>7.3f} {unit:<3} {aim:>8} {ratio:>6}")


if __name__ == "__main__":
    main()
