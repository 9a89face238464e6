"""Arithmetic over axes: the expressions in shapes, generators and tolerances.

Integers stay exact; ``/`` and ``sqrt`` give floats. Nothing but the operators below is evaluated.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import lru_cache

from solbench.errors import InputError

Number = int | float
MAX_LENGTH = 200
MAX_MAGNITUDE = 2**63
# No step on the way may be larger: a nest of powers would fill the memory before its value is looked at.
_MAX_INTERMEDIATE = 2**512

_BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_UNARY = {ast.USub: lambda a: -a, ast.UAdd: lambda a: a}
_CALLS: dict[str, Callable[..., Number]] = {"sqrt": math.sqrt, "min": min, "max": max}


def evaluate(text: str | Number, names: Mapping[str, Number], where: str) -> Number:
    """Value of ``text`` (a number, or an expression over ``names``); :class:`InputError` names ``where``."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return text
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise InputError(where, f"an expression is a number or a string of at most {MAX_LENGTH} characters")
    try:
        value = _evaluate(_parsed(text).body, names)
    except SyntaxError:
        raise InputError(where, f"{text!r} is not an expression") from None
    except (ZeroDivisionError, OverflowError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(where, f"{text!r}: {error}") from None
    if not math.isfinite(value) or abs(value) > MAX_MAGNITUDE:
        raise InputError(where, f"{text!r} is out of range")
    return value


def evaluate_int(text: str | Number, names: Mapping[str, Number], where: str) -> int:
    """As :func:`evaluate`, and the value must be integral."""
    value = evaluate(text, names, where)
    if value != int(value):
        raise InputError(where, f"{text!r} is {value}, not an integer")
    return int(value)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.Expression:
    """The same few expressions stand in all workloads of a problem."""
    return ast.parse(text, mode="eval")


def names_in(text: str | Number, where: str) -> frozenset[str]:
    """Names of axes that ``text`` uses."""
    if not isinstance(text, str):
        return frozenset()
    try:
        tree = _parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(where, f"{text!r} is not an expression") from None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def _evaluate(node: ast.AST, names: Mapping[str, Number]) -> Number:
    value = _step(node, names)
    if abs(value) > _MAX_INTERMEDIATE:
        raise ValueError("a step is out of range")
    return value


def _step(node: ast.AST, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"unknown axis {name!r}")
            return names[name]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _evaluate(left, names), _evaluate(right, names)
            if not isinstance(exponent, int) or not 0 <= exponent <= 64:
                raise ValueError("an exponent is an integer from 0 to 64")
            return base**exponent
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_evaluate(left, names), _evaluate(right, names))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_evaluate(operand, names))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS and args:
            return _CALLS[name](*[_evaluate(argument, names) for argument in args])
    raise ValueError("only numbers, axes, + - * / // % **, sqrt, min and max are allowed")
