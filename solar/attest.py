"""Says, after trying, that an extended-einsum program computes what the reference computes.

Replay and reference run on the same seeded inputs; shapes, dtypes, values, effects on inputs have to agree. The
statement holds seeds, rules, tolerances and verdicts, and no measured error, so that every processor writes the same
bytes. Runs on small shapes: :func:`same_structure` ties the small program to the one that is analysed.

Against float64: reference and replay both lie within :data:`SAFETY` running error bounds (:mod:`solar.rounding`) of the
exact value, element by element, wherever that bound is finite; the reference may sum in another order and compute its
functions otherwise than the program, hence the factor. Gradients: see :mod:`solar.gradients`. Against each other, also
where nothing is known of the error, a float output has the tolerance |a - b| <= r (|b| + s), r = 16 (p - u) + 2 u. s is
the root mean square of b, and at least 1 for patterned inputs (zeros, boundary), whose sums cancel to nothing. u is the
unit roundoff of the output's dtype, p the roundoff gathered along the longest path to it: u of the result for every
operation, and sqrt(n) times the accumulator's u for a sum of n terms (N. J. Higham, T. Mary, "A new approach to
probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019: sqrt(n) in place of n in gamma_n). 2 u is one
flipped rounding at the store; 16 stands for the conditioning of what lies between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from solar.einsum import Op, Program, to_dict
from solar.errors import ReplayError
from solar.extract.results import named_results
from solar.gradients import compare_gradients
from solar.replay import replay
from solar.rounding import LOOSE_MAPS, UNIT_ROUNDOFF, Bounded, bounded_outputs

SCHEMA = "solar.attestation.v1"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://solbench.dev/attestations/einsum-replay/v1"
SEEDS = (11, 29, 47)
KINDS = ("random", "zeros", "boundary")

# Of discrete outputs that roundings decide, so many may differ: an integer by one code, a position altogether.
DIFFERING_FRACTION = 1 / 64
SAFETY = 4
_CONDITIONING = 16
# A gradient goes back and forth through the program; beyond a quarter nothing is compared any more.
_GRADIENT_CONDITIONING, _LARGEST_RELATIVE = 256, 0.25
_DIMENSIONS = frozenset(("dim", "dims", "dim1", "dim2", "spatial"))

Inputs = dict[str, Any]


def attest(
    program: Program,
    run: Callable[..., Any],
    inputs_for: Callable[[int, str], Inputs],
    *,
    subject: Mapping[str, str],
    digest: Callable[[dict[str, Any]], str],
    analysed: Program | None = None,
    seeds: Sequence[int] = SEEDS,
    kinds: Sequence[str] = KINDS,
) -> dict[str, Any]:
    """Statement that ``program`` computes ``run``, or :class:`ReplayError` with the first disagreement.

    ``inputs_for``, ``seeds``, ``kinds``: see :func:`examine`. ``subject``, ``digest``, ``analysed``: :func:`statement`.
    """
    if analysed is not None:
        same_structure(analysed, program)
    found = examine(program, run, inputs_for, seeds=seeds, kinds=kinds)
    return statement(program, found, subject=subject, digest=digest, analysed=analysed)


def examine(
    program: Program,
    run: Callable[..., Any],
    inputs_for: Callable[[int, str], Inputs],
    *,
    seeds: Sequence[int] = SEEDS,
    kinds: Sequence[str] = KINDS,
) -> dict[str, Any]:
    """What holds of ``program`` and ``run`` (a plain JSON value), or :class:`ReplayError` with the first disagreement.

    ``inputs_for(seed, kind)``: every input by declared name in declared order, scalars too; it is called twice a case,
    for reference and replay never share a tensor.
    """
    rules = {declared: _rule(program, declared, name) for declared, name in program.outputs}
    held: set[str] = set()
    with _one_thread():
        for seed in seeds:
            for kind in kinds:
                held |= _compare(program, run, inputs_for, rules, seed, kind)
        gradients = compare_gradients(program, run, inputs_for, seeds[0], _gradient_tolerance(program))
    return {
        "verdict": "passed",
        "path": program.path,
        "seeds": list(seeds),
        "kinds": list(kinds),
        "shapes": {
            "inputs": {declared: list(program.tensors[name].shape) for declared, name in program.inputs},
            "outputs": {declared: list(program.tensors[name].shape) for declared, name in program.outputs},
        },
        "tolerance": rules,
        "float64": {"outputs": [declared for declared in rules if declared in held], "error_bounds": SAFETY},
        "gradients": gradients,
        "in_place": dict(program.aliases),
    }


def statement(
    program: Program,
    found: Mapping[str, Any],
    *,
    subject: Mapping[str, str],
    digest: Callable[[dict[str, Any]], str],
    analysed: Program | None = None,
    reduced: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """Statement over ``found``, what :func:`examine` found of ``program``.

    ``subject``: name -> digest of what the caller attests (the reference). ``digest``: of a plain JSON value,
    "algorithm:hex". ``analysed``: the program at its own sizes, for which ``program`` stands at small ones
    (:func:`same_structure`); both digests are recorded. ``reduced``: axis -> its own size and the small one.
    """
    subjects = [{"name": name, "digest": _digest_map(value)} for name, value in subject.items()]
    subjects.append({"name": "einsum-graph", "digest": _digest_map(digest(to_dict(analysed or program)))})
    if analysed is not None:
        subjects.append({"name": "einsum-graph at small sizes", "digest": _digest_map(digest(to_dict(program)))})
    sizes: dict[str, Any] = {"sizes": "whole" if analysed is None else "small"}
    if reduced:
        sizes["reduced"] = {name: list(pair) for name, pair in reduced.items()}
    return {
        "schema": SCHEMA,
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {**found, **sizes},
    }


@contextmanager
def _one_thread() -> Iterator[None]:
    """On small shapes threads wait for each other longer than they work, on a busy machine a hundred times so."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def patterned(drawn: Mapping[str, Any], kind: str) -> Inputs:
    """Seeded inputs made into a kind: floats become zeros, or -1, 0, 1 in turn; integers and scalars stay as drawn,
    for they are positions, lengths and options. ``random`` changes nothing."""
    if kind not in KINDS:
        raise ReplayError(f"no inputs of kind {kind!r}; known are {', '.join(KINDS)}")
    result: Inputs = {}
    for name, value in drawn.items():
        if kind == "random" or not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
            result[name] = value.clone() if isinstance(value, torch.Tensor) else value
        elif kind == "zeros":
            result[name] = torch.zeros(value.shape).to(value.dtype)
        else:
            result[name] = (torch.arange(value.numel()) % 3 - 1).float().reshape(value.shape).to(value.dtype)
    return result


def same_structure(analysed: Program, small: Program) -> None:
    """Raise :class:`ReplayError` unless both programs are the same operations on the same wiring, sizes apart."""
    if (analysed.inputs, analysed.outputs) != (small.inputs, small.outputs):
        raise ReplayError("small program: its inputs or outputs are not those of the program that it stands for")
    if analysed.aliases != small.aliases:
        raise ReplayError("small program: its aliases are not those of the program that it stands for")
    if len(analysed.ops) != len(small.ops):
        raise ReplayError(
            f"small program: {len(small.ops)} operations, the program that it stands for {len(analysed.ops)}"
        )
    for large_op, small_op in zip(analysed.ops, small.ops, strict=True):
        if _skeleton(analysed, large_op) != _skeleton(small, small_op):
            raise ReplayError(
                f"small program: ops.{small_op.name}: differs from the operation that it stands for by more than sizes"
            )


def _skeleton(program: Program, op: Op) -> Any:
    tensors = [
        (name, len(program.tensors[name].shape), program.tensors[name].dtype) for name in (*op.operands, *op.outputs)
    ]
    return op.name, op.kind, op.function, op.operands, op.outputs, tensors, _sizeless(op.attributes)


def _sizeless(value: Any) -> Any:
    """Attributes with every number taken out that a size may have made: all but those that name dimensions."""
    if isinstance(value, Mapping):
        # Contents of constants follow the sizes in number, too.
        return {
            key: item if key in _DIMENSIONS else "values" if key == "values" else _sizeless(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_sizeless(item) for item in value]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _compare(
    program: Program,
    run: Callable[..., Any],
    inputs_for: Callable[[int, str], Inputs],
    rules: Mapping[str, Mapping[str, Any]],
    seed: int,
    kind: str,
) -> set[str]:
    """Outputs of which some element was held against float64."""
    where = f"seed {seed}, {kind}"
    given = inputs_for(seed, kind)
    before = {name: value.clone() for name, value in given.items() if isinstance(value, torch.Tensor)}
    _check_known(program, before, where)
    inputs = inputs_for(seed, kind)
    written = set(program.aliases.values())
    try:
        result = run(*given.values())
    except (RuntimeError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, AssertionError) as error:
        raise ReplayError(f"{where}: the reference fails: {type(error).__name__}: {error}") from None
    returned = [declared for declared, _ in program.outputs if program.aliases.get(declared) != declared]
    expected = dict(named_results(result, returned, ReplayError))
    for declared, source in program.aliases.items():
        if declared == source:
            expected[declared] = given[source]
    for name, value in before.items():
        if name not in written and not _identical(value, given[name]):
            raise ReplayError(f"{where}: the reference changed its input {name!r}, which is not declared in place")
    _check_aliases(program, given, expected, where)
    actual = replay(program, inputs)
    exact = bounded_outputs(program, inputs)
    held = set()
    for declared, _ in program.outputs:
        place, reference = f"{where}: {declared}", expected[declared].detach()
        _compare_output(place, rules[declared], kind, reference, actual[declared])
        if _hold_to_float64(place, exact[declared], reference, actual[declared]):
            held.add(declared)
    return held


def _check_aliases(program: Program, given: Inputs, expected: Mapping[str, torch.Tensor], where: str) -> None:
    """A returned tensor is a written input exactly where the program says so."""
    for declared, value in expected.items():
        source = program.aliases.get(declared)
        shared = [name for name in dict.fromkeys(program.aliases.values()) if _same_memory(value, given[name])]
        if shared != ([] if source is None else [source]):
            raise ReplayError(
                f"{where}: {declared}: is {shared or 'no input'}, the program says {source or 'no input'}"
            )


def _same_memory(first: torch.Tensor, second: torch.Tensor) -> bool:
    return (first.data_ptr(), first.shape, first.stride()) == (second.data_ptr(), second.shape, second.stride())


def _hold_to_float64(where: str, exact: Bounded, reference: torch.Tensor, found: torch.Tensor) -> bool:
    """Whether any element has a finite error bound; :class:`ReplayError` where one is outside of it."""
    usable = torch.isfinite(exact.error) & torch.isfinite(exact.exact.double())
    for side, value in (("the reference", reference), ("the replay", found)):
        value = value.double()
        beyond = (value - exact.exact.double()).abs() > SAFETY * exact.error
        if bool((beyond & usable & torch.isfinite(value)).any()):
            raise ReplayError(f"{where}: {side} is further from the value in float64 than its roundings explain")
    return bool(usable.any())


def _check_known(program: Program, inputs: Mapping[str, torch.Tensor], where: str) -> None:
    for declared, name in program.inputs:
        values = program.values.get(name)
        if values is not None and inputs[declared].flatten().tolist() != list(values):
            raise ReplayError(f"{where}: inputs.{declared}: differs from the values that the program was made for")


def _compare_output(
    where: str, rule: Mapping[str, Any], kind: str, expected: torch.Tensor, actual: torch.Tensor
) -> None:
    if expected.shape != actual.shape:
        raise ReplayError(f"{where}: shape {list(expected.shape)}, the replay gives {list(actual.shape)}")
    if expected.dtype != actual.dtype:
        raise ReplayError(f"{where}: {expected.dtype}, the replay gives {actual.dtype}")
    if not expected.numel():
        return
    if rule["rule"] == "equal":
        if not _identical(expected, actual):
            raise ReplayError(f"{where}: values differ")
        return
    if rule["rule"] == "positions" and kind != "random":
        # Zeros and repeated values tie everywhere, and ties fall as the machine sums.
        return
    reference, found = expected.double(), actual.double()
    if rule["rule"] == "one code" or (rule["rule"] == "positions" and "relative" not in rule):
        differing = reference != found
        if rule["rule"] == "one code" and bool(((reference - found).abs() > 1).any()):
            raise ReplayError(f"{where}: values differ by more than one code")
    else:
        finite = torch.isfinite(reference) & torch.isfinite(found)
        scale = float(reference[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
        scale = scale if kind == "random" else max(scale, 1.0)
        close = (reference - found).abs() <= rule["relative"] * (reference.abs() + scale)
        same = (reference == found) | (torch.isnan(reference) & torch.isnan(found))
        differing = ~torch.where(finite, close, same)
    allowed = rule.get("differing_fraction", 0.0)
    if kind != "random" and rule["rule"] == "one code":
        return
    if int(differing.sum()) > max(allowed * differing.numel(), 1 if allowed else 0):
        raise ReplayError(f"{where}: values differ beyond the tolerance {dict(rule)}")


def _rule(program: Program, declared: str, name: str) -> dict[str, Any]:
    """How an output is compared; see the module's docstring."""
    paths = _paths(program)
    roundoff, floating, ordered = paths[name]
    dtype = program.tensors[name].dtype
    unit = UNIT_ROUNDOFF.get(dtype)
    if unit is None:
        if not floating:
            return {"rule": "equal"}
        return {"rule": "positions" if ordered else "one code", "differing_fraction": DIFFERING_FRACTION}
    relative = _rounded(_CONDITIONING * max(roundoff - unit, 0.0) + 2 * unit)
    if ordered:
        return {"rule": "positions", "relative": relative, "differing_fraction": DIFFERING_FRACTION}
    return {"rule": "close", "relative": relative}


def _gradient_tolerance(program: Program) -> float:
    units = [UNIT_ROUNDOFF.get(tensor.dtype, 0.0) for tensor in program.tensors.values()]
    unit, roundoff = max(units, default=0.0), max((path[0] for path in _paths(program).values()), default=0.0)
    return min(_rounded(_GRADIENT_CONDITIONING * max(roundoff - unit, unit / 64)), _LARGEST_RELATIVE)


def _paths(program: Program) -> dict[str, tuple[float, bool, bool]]:
    """Per tensor: roundoff along its longest path; whether floats had a part in it; whether an order of floats had."""
    found: dict[str, tuple[float, bool, bool]] = {}
    for _, name in program.inputs:
        found[name] = (0.0, program.tensors[name].dtype in UNIT_ROUNDOFF, False)
    for op in program.ops:
        reads = [found[name] for name in op.operands]
        roundoff = max((entry[0] for entry in reads), default=0.0)
        floating = any(entry[1] for entry in reads)
        ordered = any(entry[2] for entry in reads)
        for position, name in enumerate(op.outputs):
            dtype = program.tensors[name].dtype
            unit = UNIT_ROUNDOFF.get(dtype, 0.0)
            positions = (op.kind in ("sort", "scan") and position == 1) or op.function in (
                "argmax",
                "argmin",
                "searchsorted",
            )
            found[name] = (
                roundoff + _step(program, op, unit),
                floating or dtype in UNIT_ROUNDOFF,
                ordered or (positions and floating),
            )
    return found


def _step(program: Program, op: Op, unit: float) -> float:
    """Roundoff that one operation adds."""
    if op.kind in ("view", "copy", "create", "sort"):
        return 0.0
    accumulator = min(unit, UNIT_ROUNDOFF["float32"])
    if op.kind == "einsum":
        extents = op.attributes["indices"]
        return unit + accumulator * math.sqrt(
            math.prod(n for i, n in extents.items() if i not in op.attributes["output"])
        )
    if op.kind in ("reduce", "scan") or op.function in ("index_add", "scatter", "index_put"):
        before = math.prod(program.tensors[op.operands[0]].shape)
        after = math.prod(program.tensors[op.outputs[0]].shape)
        terms = before / max(after, 1) if op.kind == "reduce" else math.prod(program.tensors[op.operands[-1]].shape)
        return unit + accumulator * math.sqrt(max(terms, 1.0))
    if op.kind == "opaque":
        return unit * program.tensors[op.operands[0]].shape[-1]
    return unit * (16 if op.function in LOOSE_MAPS else 2 if op.kind == "map" else 1)


def _rounded(value: float) -> float:
    """Up to two significant digits: a tolerance is a statement, not a measurement."""
    if value <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(value))
    return math.ceil(value * 10.0**digits) / 10.0**digits


def _identical(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.dtype.is_floating_point:
        a, b = first.double(), second.double()
        return bool(((a == b) | (torch.isnan(a) & torch.isnan(b))).all())
    return torch.equal(first, second)


def _digest_map(value: str) -> dict[str, str]:
    algorithm, _, text = value.partition(":")
    return {algorithm: text}
