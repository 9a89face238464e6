"""Compares the gradients of a replay with the reference's own, where the reference has any.

The reference runs on inputs that ask for gradients; each of its differentiable outputs gets a seeded cotangent, and the
same goes through the replay. Not compared, with the reason in the statement: a reference that cuts its gradients
itself (``detach``, ``no_grad``), for the program knows no such cut; inputs written in place; outputs that carry none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from solar.einsum import Program
from solar.errors import ReplayError
from solar.extract.results import named_results
from solar.replay import replay

# Of all elements so many may differ: kinks (a clamp's limit, a tie) that the two sides differentiate differently.
DIFFERING_FRACTION = 1 / 64
_DTYPES = ("float64", "float32", "float16", "bfloat16")


class _Cuts(TorchFunctionMode):
    """Notes whether anything was taken out of the graph of derivatives."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("detach", "detach_", "_set_grad_enabled") or func is torch.Tensor.data.__get__:
            self.found = True
        return func(*args, **(kwargs or {}))


def compare_gradients(
    program: Program,
    run: Callable[..., Any],
    inputs_for: Callable[[int, str], dict[str, Any]],
    seed: int,
    relative: float,
) -> dict[str, Any]:
    """What was compared: ``outputs`` and ``inputs`` by declared name, ``relative``; or the ``reason`` why nothing was.

    |a - b| <= ``relative`` (|b| + rms(b)) for all but :data:`DIFFERING_FRACTION` of the elements, or both are nothing
    beside ``relative`` times the largest gradient; else :class:`ReplayError`.
    """
    written = set(program.aliases.values())
    wanted = [d for d, name in program.inputs if program.tensors[name].dtype in _DTYPES and d not in written]
    returned = [declared for declared, _ in program.outputs if program.aliases.get(declared) != declared]
    if not wanted:
        return {"reason": "no input that could carry a gradient"}
    cuts = _Cuts()

    def attempt(names: list[str]) -> tuple[dict[str, Any], dict[str, torch.Tensor]] | None:
        given = _asking(inputs_for(seed, "random"), names)
        try:
            with torch.enable_grad(), cuts:
                return given, dict(named_results(run(*given.values()), returned, ReplayError))
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            return None

    ran = attempt(wanted)
    if ran is None:
        # An operator may have no derivative to one of its arguments (stored statistics, say).
        wanted = [name for name in wanted if attempt([name]) is not None]
        ran = attempt(wanted)
    if ran is None or not wanted:
        return {"reason": "the reference does not run on inputs that ask for gradients"}
    given, results = ran
    outputs = [name for name in returned if results[name].requires_grad and results[name].dtype.is_floating_point]
    if not outputs:
        return {"reason": "no output of the reference carries a gradient"}
    if cuts.found:
        return {"reason": "the reference cuts its gradients"}
    try:
        expected = _gradients(results, outputs, given, wanted, seed)
    except (RuntimeError, NotImplementedError):
        return {"reason": "PyTorch has no gradient of the reference"}
    given = _asking(inputs_for(seed, "random"), wanted)
    try:
        actual = _gradients(replay(program, given), outputs, given, wanted, seed)
    except (RuntimeError, NotImplementedError) as error:
        raise ReplayError(f"seed {seed}, gradients: the replay has none: {str(error).splitlines()[0]}") from None
    largest = max(_rms(gradient) for gradient in expected.values())
    for name in wanted:
        # Terms that cancel (a bias before a mean is taken out) leave nothing but their roundings.
        nothing = relative * largest
        if _rms(expected[name]) <= nothing and _rms(actual[name]) <= nothing:
            continue
        _compare(f"seed {seed}, gradient to {name}", expected[name], actual[name], relative)
    return {"seed": seed, "outputs": outputs, "inputs": wanted, "relative": relative}


def _asking(inputs: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    return {name: value.detach().requires_grad_() if name in wanted else value for name, value in inputs.items()}


def _gradients(
    results: Mapping[str, torch.Tensor], outputs: list[str], given: Mapping[str, Any], wanted: list[str], seed: int
) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(results[name].shape, generator=generator).to(results[name].dtype) for name in outputs]
    pairs = [(results[name], cotangent) for name, cotangent in zip(outputs, drawn) if results[name].requires_grad]
    sources = [given[name] for name in wanted]
    found = torch.autograd.grad(
        [r for r, _ in pairs], sources, [c for _, c in pairs], allow_unused=True, materialize_grads=True
    )
    return dict(zip(wanted, found))


def _rms(gradient: torch.Tensor) -> float:
    finite = gradient.double()[torch.isfinite(gradient)]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def _compare(where: str, expected: torch.Tensor, actual: torch.Tensor, relative: float) -> None:
    reference, found = expected.double(), actual.double()
    close = (reference - found).abs() <= relative * (reference.abs() + _rms(expected))
    differing = int((~close & torch.isfinite(reference)).sum())
    if differing > DIFFERING_FRACTION * reference.numel():
        raise ReplayError(f"{where}: differs from the reference's own beyond {relative:g}")
