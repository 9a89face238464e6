"""Stage 3: T_SOL of one program on one machine.

    T_SOL = max( max over engines of sum of work / rate ,  bytes that must move / memory bandwidth )

No kernel of the class (classical products in any order and association, Winograd's stride-1 windows, any fusion, any
format that the checks admit) is faster. Nothing here depends on PyTorch, NumPy, or the size of the tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from solar.bound.cancellation import cancelled
from solar.bound.chains import Priced, price_contractions
from solar.bound.choices import pulled_out
from solar.bound.declared import declared_work, is_counted
from solar.bound.demand import Demand, demand
from solar.bound.einsums import products_as_written
from solar.bound.facts import IGNORED, Facts, gather_facts
from solar.bound.formats import Prices, check_rejected, sources
from solar.bound.patterns import scalars_of
from solar.bound.sharing import shared
from solar.bound.structure import Structure, structure_of
from solar.bound.traffic import Moved, live, moved
from solar.bound.work import Elementwise, elementwise_work
from solar.einsum import Op, Program
from solar.errors import GraphError
from solar.hardware import Machine

SCHEMA = "solar.bound.v1"
CLASS = (
    "classical products in any order, any fusion, any admissible format; Winograd for stride-1 windows; "
    "no Strassen, no FFT, no identities of functions, no polynomials of a matrix beyond their powers, "
    "no symmetry through a third matrix"
)
_GATHERS = frozenset(("gather", "index_select", "embedding", "index"))


def bound(program: Program, machine: Machine, *, rejected_formats: Sequence[str] = ()) -> dict[str, Any]:
    """Lower bound on the time of any kernel that computes ``program`` on ``machine``.

    ``rejected_formats``: formats that rounding a contraction's operands to breaks a check of the problem; every other
    coarser float is taken as admissible. ``<format>x2`` rejects splitting into two terms as well.

    Returns a plain JSON value (:data:`SCHEMA`); seconds, bytes and operations are numbers, missing is None:

    * ``t_sol_s``, ``binds``: the maximum, and which term it is ("memory" or an engine).
    * ``compute``: per engine and mode ``ops`` (a multiply-add is two, each product of a split format counts),
      ``rate_per_s``, ``seconds``, and ``cycles`` (clock-free; None in a calibrated model).
    * ``memory``: ``live_bytes`` (read and written) beside ``declared_bytes``; ``absorbed_write_bytes`` cost nothing.
    * ``macs``: multiply-adds of the reference as written that some output needs, a convolution's own padding counted in
      as is the custom; ``dense_macs``: the same without regard to masks, zeros and slices; ``flops`` = 2 * ``macs``.
      What is priced may be less: see ``compute`` and ``looseness``.
    * ``terms``: what each live operation is charged; work that another operation's price contains is 0.
    * ``coverage``, ``uncounted``, ``draws``, ``assumptions``, ``looseness``: what the number stands on.

    Raises :class:`~solar.errors.GraphError` for a program that is not well-formed, or an unknown rejected format.
    """
    return price(analyse(program), machine, rejected_formats=rejected_formats)


@dataclass(frozen=True)
class Analysis:
    """What a bound needs of a program whatever the machine: what is needed, what moves, what is computed."""

    program: Program
    facts: Facts
    structure: Structure
    wanted: Demand
    narrowest: Mapping[str, str]
    elementwise: Sequence[Elementwise]
    opaque: Sequence[Op]
    declared: Mapping[str, int]
    tensors: Sequence[Moved]


def analyse(program: Program) -> Analysis:
    """The part of :func:`bound` that several machines share; raises as it does."""
    with _one_line():
        program = pulled_out(shared(program))
        facts = gather_facts(program)
        structure = structure_of(program, facts)
        taken_out = cancelled(program)
        wanted = demand(program, facts, structure, taken_out)
        return Analysis(
            program, facts, structure, wanted, sources(program),
            elementwise_work(program, facts, wanted, structure, taken_out),
            [op for op in program.ops if op.kind == "opaque" and any(wanted.needed.get(n) for n in op.outputs)],
            declared_work(program, facts, wanted.needed), moved(program, facts, wanted),
        )  # fmt: skip


def price(analysis: Analysis, machine: Machine, *, rejected_formats: Sequence[str] = ()) -> dict[str, Any]:
    """The bound of an analysed program on one machine: :func:`bound`."""
    check_rejected(rejected_formats)
    with _one_line():
        return _price(analysis, machine, tuple(sorted(set(rejected_formats))))


@contextmanager
def _one_line() -> Iterator[None]:
    """A program that no rule can follow is not well-formed, however it fails."""
    try:
        yield
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        StopIteration,
        RecursionError,
    ) as error:
        raise GraphError(f"einsum-graph: cannot be analysed: {type(error).__name__}: {error}") from error


def _price(analysis: Analysis, machine: Machine, rejected: tuple[str, ...]) -> dict[str, Any]:
    program, facts, structure, wanted = analysis.program, analysis.facts, analysis.structure, analysis.wanted
    elementwise, opaque, declared, tensors = (
        analysis.elementwise, analysis.opaque, analysis.declared, analysis.tensors,
    )  # fmt: skip
    prices = Prices(machine, rejected)
    contractions = price_contractions(program, facts, wanted, prices, analysis.narrowest, structure)
    compute = _compute(program, machine, prices, contractions, elementwise, opaque, declared)
    memory = _memory(machine, tensors)
    engines: dict[str, list[float]] = {}
    for entry in compute:
        engines.setdefault(entry["engine"], []).append(entry["seconds"])
    terms = {"memory": memory["seconds"], **{name: math.fsum(parts) for name, parts in engines.items()}}
    binds = max(terms, key=lambda name: (terms[name], name == "memory"))
    macs = {
        op.name: _written(program, facts, wanted, op, live_only=True)
        for op in _einsums(program, wanted)
        if not (structure.vanishing - facts.selectors.keys()).intersection(op.operands)
    }
    dense = sum(_written(program, facts, wanted, op, live_only=False) for op in _einsums(program, wanted))
    names = sorted({op.function for op in opaque if not is_counted(op)})
    return {
        "schema": SCHEMA,
        "target": machine.name,
        "path": program.path,
        "class": CLASS,
        "coverage": "partial" if names else "complete",
        "uncounted": names,
        "t_sol_s": terms[binds],
        "binds": binds,
        "compute": compute,
        "memory": memory,
        "macs": sum(macs.values()),
        "dense_macs": dense,
        "flops": 2 * sum(macs.values()),
        "terms": _terms(program, wanted, contractions, elementwise, declared),
        "tensors": [
            {"name": t.name, "role": t.role, "live_bytes": t.live_bytes, "declared_bytes": t.declared_bytes}
            for t in tensors
        ],
        "draws": "frozen" if wanted.frozen else "any draw",
        "assumptions": _assumptions(program, machine, rejected, contractions, wanted),
        "looseness": _looseness(program, facts, wanted, contractions, elementwise, opaque),
    }


def _einsums(program: Program, wanted: Demand) -> list[Op]:
    return [op for op in program.ops if op.kind == "einsum" and any(wanted.needed.get(n) for n in op.outputs)]


def _written(program: Program, facts: Facts, wanted: Demand, op: Op, *, live_only: bool) -> int:
    region = wanted.needed.get(op.outputs[0], ()) if live_only else None
    return products_as_written(program, facts, op, region)


def _compute(
    program: Program, machine: Machine, prices: Prices, contractions: Sequence[Priced],
    elementwise: Sequence[Elementwise], opaque: Sequence[Op], declared: Mapping[str, int],
) -> list[dict[str, Any]]:  # fmt: skip
    """Work by engine and mode, with the rate it is divided by."""
    parts: dict[tuple[str, str], tuple[list[float], Any]] = {}
    for item in contractions:
        for step in item.cost.steps:
            key = (step.price.engine, step.price.mode)
            parts.setdefault(key, ([], step.price.rate))[0].append(2 * step.price.products * step.multiply_adds)
    if elementwise:
        _, rate = machine.fastest("valu")
        parts.setdefault(("valu", "elementwise"), ([], rate))[0].append(float(sum(e.operations for e in elementwise)))
    for op in opaque:
        price = _opaque_price(program, prices, op)
        if price is not None and declared.get(op.name, 0) > 0:
            parts.setdefault((price.engine, price.mode), ([], price.rate))[0].append(float(declared[op.name]))
    found = []
    for (engine, mode), (work, rate) in sorted(parts.items(), key=lambda item: item[0]):
        operations = math.fsum(work)
        if operations:
            found.append(
                {
                    "engine": engine,
                    "mode": mode,
                    "ops": operations,
                    "rate_per_s": rate.per_s,
                    "seconds": operations / rate.per_s,
                    "cycles": None if rate.per_clock is None else operations / rate.per_clock,
                }
            )
    return found


def _opaque_price(program: Program, prices: Prices, op: Op) -> Any:
    dtypes = [program.tensors[name].dtype for name in (*op.operands, *op.outputs)]
    if not dtypes:
        return None
    return min((prices.of(dtype, dtype) for dtype in dtypes), key=lambda price: price.seconds)


def _memory(machine: Machine, tensors: Sequence[Moved]) -> dict[str, Any]:
    reads, writes = live(tensors, "input"), live(tensors, "output")
    absorbed = min(writes, int(machine.absorbed_store_bytes.value))
    charged = reads + writes - absorbed
    if reads + writes and not charged:
        charged = 1  # something moves: the time is not nothing
    rate = machine.memory
    return {
        "live_bytes": reads + writes,
        "live_read_bytes": reads,
        "live_write_bytes": writes,
        "absorbed_write_bytes": absorbed,
        "declared_bytes": sum(t.declared_bytes for t in tensors),
        "bandwidth_bytes_per_s": rate.per_s,
        "seconds": charged / rate.per_s,
        "cycles": None if rate.per_clock is None else charged / rate.per_clock,
    }


def _terms(
    program: Program, wanted: Demand, contractions: Sequence[Priced], elementwise: Sequence[Elementwise],
    declared: Mapping[str, int],
) -> list[dict[str, Any]]:  # fmt: skip
    """One entry per live operation: what it is charged (nothing where its work is part of another's)."""
    priced = {item.op: item for item in contractions}
    operations = {item.op: item.operations for item in elementwise}
    found = []
    for op in program.ops:
        if not any(wanted.needed.get(name) for name in op.outputs):
            continue
        engine: str | None = None
        mode: str | None = None
        work = 0.0
        if op.name in priced and priced[op.name].cost.steps:
            steps = priced[op.name].cost.steps
            leading = max(steps, key=lambda step: step.multiply_adds * step.price.seconds)
            engine, mode = leading.price.engine, leading.price.mode
            work = math.fsum(2 * step.price.products * step.multiply_adds for step in steps)
        elif op.name in operations:
            engine, mode, work = "valu", "elementwise", float(operations[op.name])
        elif op.name in declared:
            mode, work = "declared", float(declared[op.name])
        found.append(
            {"op": op.name, "kind": op.kind, "function": op.function, "engine": engine, "mode": mode, "work": work}
        )
    return found


def _assumptions(
    program: Program, machine: Machine, rejected: Sequence[str], contractions: Sequence[Priced], wanted: Demand
) -> list[str]:
    absorbed = machine.absorbed_store_bytes
    found = [
        "inputs come from memory: no cache holds them when the time starts",
        f"{int(absorbed.value)} bytes of stores need not reach memory: {absorbed.source}",
        "data are generic: no element is zero, and no two are equal, by chance",
    ]
    if contractions:
        found.append("a contraction runs on one engine, the one that is soonest done; engines overlap with each other")
        refused = f" but {', '.join(rejected)}" if rejected else ""
        found.append(
            f"operands may be rounded to any coarser 16-bit float or TF32{refused}: no check is known to forbid it"
        )
        found.append("association does not change across gathers, scatters, scans, concatenations and padding")
        if any(op.function in _GATHERS and not program.values.keys() >= {*op.operands[1:]} for op in program.ops):
            found.append("rows that unknown indices gather are multiplied as different rows")
    if any(scalars_of(op).get(1) == IGNORED for op in program.ops if op.function in ("eq", "ne")):
        found.append(f"no target has the value {IGNORED}, which marks targets that do not count")
    if wanted.frozen:
        found.append("known contents of integer inputs decide the work: the bound holds for these")
    return found


def _looseness(
    program: Program, facts: Facts, wanted: Demand, contractions: Sequence[Priced],
    elementwise: Sequence[Elementwise], opaque: Sequence[Op],
) -> list[str]:  # fmt: skip
    found = []
    steps = [step for item in contractions for step in item.cost.steps]
    if any(step.winograd for step in steps):
        found.append("stride-1 windows are priced at Winograd's count, without its transforms and at any tile shape")
    if any(step.symmetric for step in steps):
        found.append("a product of a tensor with its own transpose is priced as one triangle, however it is tiled")
    if any("*" in step.price.mode or step.price.mode != "float32" for step in steps):
        found.append("contractions are priced at the peak of the quickest admissible format")
    if any(item.reassociated for item in contractions):
        found.append("a chain of linear operations is priced at its cheapest association, additions not counted")
    if any(item.cost.reduced for item in contractions):
        found.append("a linear chain was too long or too irregular: only its largest unavoidable term is priced")
    if elementwise:
        found.append("an elementwise function counts one operation of the quickest kind, also an exponential or a root")
    if any(
        axis.unplaced is not None
        for _, name in program.inputs
        for block in wanted.needed.get(name, ())
        for axis in block.axes
    ):
        found.append("unknown indices are taken to name as few elements as they can")
    if any(_unsettled(program, facts, op) for op in program.ops):
        found.append("unknown conditions are taken to choose the branch that needs less")
    uncounted = sorted({op.function for op in opaque if not is_counted(op)})
    if uncounted:
        found.append(f"not decomposed: {', '.join(uncounted)}")
    if any(is_counted(op) for op in opaque):
        found.append("a factorisation counts as of a symmetric matrix; a system only where its solution must exist")
    if not found:
        found.append("none known: bytes and operations are those that any kernel needs")
    return found


def _unsettled(program: Program, facts: Facts, op: Op) -> bool:
    if op.kind != "map" or op.function != "where" or "0" in op.attributes.get("scalars", {}):
        return False
    pattern = facts.patterns.get(op.operands[0])
    return pattern is None or not pattern.settled
