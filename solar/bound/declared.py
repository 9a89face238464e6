"""Operations that are not decomposed but counted: factorisations and triangular systems (rule 3).

Their counts (:mod:`solar.convert.linalg`) hold for a whole result of generic operands. A factorisation is charged where
the last element of a factor is wanted, for that one depends on all of the matrix. A system is linear in its right side,
so it is charged only where its solution must exist and nothing cheaper makes it: all of it is an output, or read by
something that is not linear, or the right side of one more system. Nothing is charged for operands that have zeros by
structure, repeat themselves, or are of low rank: sums of products of less, outer sums and products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from solar.bound import regions as rg
from solar.bound.demand import FACTORISATIONS, SYSTEMS, is_decided
from solar.bound.expansion import has_full_rank
from solar.bound.facts import Facts
from solar.bound.regions import Region
from solar.einsum import Op, Program


def is_counted(op: Op) -> bool:
    """Whether what an opaque operation costs is known."""
    return op.function in FACTORISATIONS or op.function in SYSTEMS


def declared_work(program: Program, facts: Facts, needed: Mapping[str, Region]) -> dict[str, int]:
    """Operations of every live opaque op by name; ``needed``: what is demanded of every tensor."""
    right_sides, matrices = (_varied(program, facts, needed, products=p) for p in (False, True))
    charged: dict[str, int] = {}
    # Tensors that must exist as such, with the number of systems that still read them as a right side.
    firm = {name: 0 for _, name in program.outputs}
    for op in reversed(program.ops):
        wants = [needed.get(name, ()) for name in op.outputs]
        if not any(wants):
            continue
        depth = min((firm[name] for name in op.outputs if name in firm), default=None)
        if op.kind == "opaque":
            operations = op.attributes.get("ops") or 0
            if is_counted(op):
                generic = op.operands[0] in matrices and (
                    op.function != "triangular_solve" or op.operands[1] in right_sides
                )
                whole = is_decided(program, op, wants) and _is_full(program, facts, op, needed)
                made = op.function in FACTORISATIONS or depth is not None
                operations = operations * _batch(program, facts, op) if generic and whole and made else 0
            charged[op.name] = operations
        if op.function == "triangular_solve":
            firm[op.operands[0]] = 0
            if depth == 0:
                firm.setdefault(op.operands[1], 1)
        elif op.kind in ("view", "cast", "copy", "map", "index") and op.function != "index_add":
            # Through what keeps a value; a gather keeps a right side, for it permutes its rows.
            if depth is not None and (len(op.operands) == 1 or op.function in ("gather", "index_select")):
                firm[op.operands[0]] = min(depth, firm.get(op.operands[0], depth))
            elif op.function not in ("add", "sub", "mul", "div"):
                firm.update(dict.fromkeys(op.operands, 0))
        elif op.kind != "einsum" and op.function != "sum":
            firm.update(dict.fromkeys(op.operands, 0))
    return charged


def _varied(program: Program, facts: Facts, needed: Mapping[str, Region], *, products: bool) -> frozenset[str]:
    """Tensors whose elements all differ in their own right, as those of an input do; ``products``: also those that a
    contraction of full rank makes."""
    found = {name for _, name in program.inputs}
    for op in program.ops:
        sizes = {name: program.tensors[name].elements for name in op.operands}
        size = max((program.tensors[name].elements for name in op.outputs), default=0)
        if op.kind == "map":
            made = any(name in found and sizes[name] == size for name in op.operands)
        elif op.kind == "index":
            made = op.operands[0] in found and sizes[op.operands[0]] >= size
        elif op.kind == "copy":
            made = all(name in found for name in op.operands) and sum(sizes.values()) >= size
        elif op.kind == "einsum" and len(op.operands) > 1:
            made = products and len(op.operands) == 2 and has_full_rank(op) and all(n in found for n in op.operands)
        elif op.function == "expand":
            # A matrix that repeats in its batch is still one.
            inner = [math.prod(program.tensors[name].shape[-2:]) for name in (*op.operands, *op.outputs)]
            made = op.operands[0] in found and inner[0] >= inner[1]
        elif op.kind == "opaque":
            made = all(name in found for name in op.operands) and _is_full(program, facts, op, needed)
        else:
            made = (
                bool(op.operands) and op.operands[0] in found and (op.kind != "view" or sizes[op.operands[0]] >= size)
            )
        if made:
            found.update(op.outputs)
    return frozenset(found)


def _is_full(program: Program, facts: Facts, op: Op, needed: Mapping[str, Region]) -> bool:
    """Whether no operand has zeros by structure, is constant, or repeats itself inside a matrix."""
    for position, name in enumerate(op.operands):
        tensor = program.tensors[name]
        inner = {i for i in (len(tensor.shape) - 2, len(tensor.shape) - 1) if i >= 0 and tensor.shape[i] > 1}
        if name in facts.fixed or inner & facts.uniform[name]:
            return False
        least = tensor.elements
        if position == 0 and op.function in ("triangular_solve", "cholesky"):
            least = math.prod(tensor.shape[:-1]) * (tensor.shape[-1] - 1) // 2
        if rg.count(needed.get(name, ())) < least:
            return False
    return True


def _batch(program: Program, facts: Facts, op: Op) -> int:
    """Matrices that differ from each other."""
    shape = program.tensors[op.operands[0]].shape[:-2]
    alike = frozenset.intersection(*(facts.uniform[name] for name in op.operands))
    return math.prod(extent for i, extent in enumerate(shape) if i not in alike)
