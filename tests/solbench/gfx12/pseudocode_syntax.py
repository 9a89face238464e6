"""Reads the pseudocode of the RDNA4 ISA guide into a tree: the language as far as the instruction tests need it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<cast>\d+'[UIFB](?![\w.]))
  | (?P<number>(?:\d+')?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?:ULL|LL|U|F)?(?!\w))
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op>\+:|\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
""", re.X)  # fmt: skip
# Binary operators, loosest first.
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/"), ("**",),
)  # fmt: skip


class Node(NamedTuple):
    """A tree: what it is, and its parts."""

    what: str
    parts: tuple[Any, ...] = ()


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SyntaxError(f"no token at {text[at : at + 30]!r}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group()))
        at = match.end()
    return [*found, ("end", "")]


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    @property
    def text(self) -> str:
        return self.tokens[self.at][1]

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    def take(self, wanted: str | None = None) -> str:
        text = self.text
        if wanted is not None and text != wanted:
            raise SyntaxError(f"expected {wanted!r}, found {text!r} after {self.tokens[max(0, self.at - 6) : self.at]}")
        self.at += 1
        return text

    def has(self, text: str) -> bool:
        if self.text == text and self.kind in ("op", "name"):
            self.at += 1
            return True
        return False

    def block(self, *ends: str) -> Node:
        statements = []
        while self.text not in ends and self.kind != "end":
            if self.has(";"):
                continue
            statements.append(self.statement())
        return Node("block", tuple(statements))

    def statement(self) -> Node:
        if self.has("if"):
            return self.branch()
        if self.has("for"):
            name = self.take()
            self.take("in")
            low = self.expression()
            self.take(":")
            high = self.expression()
            self.take("do")
            body = self.block("endfor")
            self.take("endfor")
            return Node("for", (name, low, high, body))
        if self.has("break"):
            return Node("break")
        if self.has("return"):
            return Node("return", (self.expression(),))
        if self.has("declare"):
            name = self.take()
            self.take(":")
            self.take()
            count = None
            if self.has("["):
                count = self.expression()
                self.take("]")
            return Node("declare", (name, count))
        target = self.expression()
        for sign in ("=", "+=", "-="):
            if self.has(sign):
                if self.text == "lambda":
                    return Node("define", (target.parts[0], self.lambda_()))
                return Node("assign", (sign, target, self.expression()))
        return Node("do", (target,))

    def branch(self) -> Node:
        condition = self.expression()
        self.take("then")
        then = self.block("elsif", "else", "endif")
        if self.has("elsif"):
            return Node("if", (condition, then, self.branch()))
        otherwise = self.block("endif") if self.has("else") else Node("block")
        self.take("endif")
        return Node("if", (condition, then, otherwise))

    def lambda_(self) -> Node:
        self.take("lambda")
        self.take("(")
        names = [self.take()]
        while self.has(","):
            names.append(self.take())
        self.take(")")
        self.take("(")
        if self.text in ("if", "declare", "for"):
            body = self.block(")")
        else:
            body = Node("return", (self.expression(),))
        self.take(")")
        return Node("lambda", (tuple(names), body))

    def expression(self) -> Node:
        condition = self.binary(0)
        if self.has("?"):
            then = self.expression()
            self.take(":")
            return Node("choose", (condition, then, self.expression()))
        return condition

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.kind == "op" and self.text in _LEVELS[level]:
            sign = self.take()
            left = Node("binary", (sign, left, self.binary(level + 1)))
        return left

    def unary(self) -> Node:
        if self.kind == "op" and self.text in ("-", "+", "~", "!"):
            return Node("unary", (self.take(), self.unary()))
        return self.postfix(self.primary())

    def primary(self) -> Node:
        kind, text = self.kind, self.take()
        if text == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if text == "{":
            parts = [self.expression()]
            while self.has(","):
                parts.append(self.expression())
            self.take("}")
            return Node("concat", tuple(parts))
        if kind == "number":
            return _number(text)
        if kind == "cast":
            self.take("(")
            inner = self.expression()
            self.take(")")
            return Node("cast", (int(text[:-2]), text[-1], inner))
        if kind == "name":
            return Node("name", (text,))
        raise SyntaxError(f"{text!r} begins no expression")

    def postfix(self, node: Node) -> Node:
        while True:
            if self.has("."):
                node = Node("typed", (node, self.take()))
            elif self.text == "(" and node.what == "name":
                self.take("(")
                arguments = []
                while not self.has(")"):
                    arguments.append(self.expression())
                    self.has(",")
                node = Node("call", (node.parts[0], tuple(arguments)))
            elif self.has("["):
                first = self.expression()
                if self.has(":"):
                    node = Node("slice", (node, first, self.expression()))
                elif self.has("+:"):
                    node = Node("part", (node, first, self.expression()))
                else:
                    node = Node("index", (node, first))
                self.take("]")
            else:
                return node


def _number(text: str) -> Node:
    size, _, digits = text.rpartition("'")
    width = int(size) if size else 64 if "LL" in digits else 32
    if digits.startswith("0x"):
        return Node("int", (int(digits.rstrip("UL"), 16), width))
    if "." in digits or digits.endswith("F"):
        return Node("real", (float(digits.rstrip("F")), {16: "f16", 32: "f32"}.get(width if size else 0, "")
                             or ("f32" if digits.endswith("F") else "f64")))  # fmt: skip
    return Node("int", (int(digits.rstrip("ULF")), width))


def parse(text: str) -> Node:
    """The tree of one instruction's pseudocode; SyntaxError where the language is another."""
    reader = _Reader(text)
    tree = reader.block()
    if reader.kind != "end":
        raise SyntaxError(f"{reader.text!r} is left over")
    return tree
