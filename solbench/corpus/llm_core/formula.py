"""Integer formulas of the rules, compiled once: a search evaluates each of them some ten thousand times."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from solbench.errors import InputError

Formula = Callable[[Mapping[str, int]], int]
MAX_LENGTH = 200
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_CALLS = {"min": min, "max": max}


@cache
def compile_formula(text: str | int, where: str = "formula") -> Formula:
    """The value of ``text`` (a number, or + - * // min max over names) as a function of the names' values.

    Raises :class:`InputError` for anything else. The function raises it for a division by zero, and NameError for
    a name without a value: rules are checked for those when they are loaded (:func:`formula_names`).
    """
    code = compile(ast.Expression(_tree(str(text), where)), where, "eval")
    space: dict[str, Any] = {"__builtins__": {}, **_CALLS}

    def evaluate(names: Mapping[str, int]) -> int:
        try:
            # Safe: the tree holds integers, names and the operators above, nothing that could reach an attribute.
            return int(eval(code, space, names))  # noqa: S307
        except ZeroDivisionError:
            raise InputError(where, f"{text!r} divides by zero") from None

    return evaluate


@cache
def formula_names(text: str | int, where: str = "formula") -> frozenset[str]:
    """Names that ``text`` uses; raises as :func:`compile_formula`."""
    return frozenset(
        node.id for node in ast.walk(_tree(str(text), where)) if isinstance(node, ast.Name) and node.id not in _CALLS
    )


def _tree(text: str, where: str) -> ast.expr:
    try:
        if len(text) > MAX_LENGTH:
            raise SyntaxError
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(where, f"{text[:MAX_LENGTH]!r} is not a formula") from None
    _check(tree, text, where)
    return tree


def _check(node: ast.expr, text: str, where: str) -> None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return
        case ast.Name(id=name) if name not in _CALLS:
            return
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            parts = [left, right]
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as parts, keywords=[]) if name in _CALLS:
            pass
        case _:
            raise InputError(where, f"{text!r}: only integers, names, + - * //, min and max are allowed")
    for part in parts:
        _check(part, text, where)
