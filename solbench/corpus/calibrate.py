"""Measuring how much of a tolerance right implementations use, and which lower precisions exceed it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from solbench.corpus.calibration import LARGEST_SHARE, SCHEMA, Calibration, Measured, Step, Used, basis
from solbench.corpus.formats import copied
from solbench.corpus.load import Problem
from solbench.corpus.precision import LOWER, required_variants
from solbench.corpus.reduce import Instance
from solbench.corpus.reference import load_reference, named_outputs
from solbench.corpus.tolerance import step_shares, used_shares
from solbench.device import cpu
from solbench.inputs import draw

SEEDS = (0, 1, 2)


def calibrate(problem: Problem, instances: Sequence[Instance], seeds: Sequence[int] = SEEDS) -> Calibration:
    """Run what must pass on every seed of every instance, lower precisions on the first; instances of the same content
    once. ``instances``: small ones of the problem's workloads. What no lower precision changes is left out.

    Raises what a variant raises that cannot be run.
    """
    instances = list({instance.content: instance for instance in reversed(instances)}.values())[::-1]
    shares: dict[tuple[str, str], list[float]] = {}
    steps: dict[str, float] = {}
    required: dict[str, None] = {}
    for instance in instances:
        must_pass = required_variants(instance)
        required |= dict.fromkeys(must_pass)
        for seed in seeds:
            inputs = draw(instance.definition, instance.workload, instance.axes, seed, folder=problem.path)
            expected = named_outputs(instance.definition, load_reference(instance.definition)(**copied(inputs)))
            for output, step in step_shares(instance, expected).items():
                steps[output] = max(step, steps.get(output, 0.0))
            variants = {**must_pass, **LOWER} if seed == seeds[0] else must_pass
            for variant, run in variants.items():
                for output, share in used_shares(instance, inputs, expected, run(instance, inputs)).items():
                    shares.setdefault((output, variant), []).append(share)
    return Calibration(
        schema=SCHEMA,
        problem=problem.key,
        basis=basis(problem),
        processor=_processor(),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        seeds=tuple(seeds),
        instances=tuple(Measured(workload=i.workload.uuid, axes=i.axes, note=i.note) for i in instances),
        steps=tuple(Step(output=output, share=_upwards(steps[output])) for output in sorted(steps)),
        used=tuple(
            Used(
                output=output,
                variant=variant,
                required=variant in required,
                least=_upwards(min(shares[output, variant])),
                most=_upwards(max(shares[output, variant])),
            )
            for output in sorted(steps)
            for variant in {**required, **LOWER}
            if variant in required or max(shares[output, variant]) > 0
        ),
    )


def _processor() -> str:
    """Model, and the instructions that PyTorch's kernels use on it: both decide the order of sums."""
    return f"{cpu.identity()['model']} ({torch.backends.cpu.get_cpu_capability()})"


def _upwards(share: float) -> float:
    """Two significant digits, rounded up."""
    if share <= 0 or share >= LARGEST_SHARE:
        return min(share, LARGEST_SHARE)
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return float(f"{math.ceil(share / unit - 1e-6) * unit:.2g}")
