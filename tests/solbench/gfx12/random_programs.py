"""Random C programs without undefined behaviour: integer and floating-point code of eight inputs, with loops and
branches that threads take differently.

The same text is compiled for gfx1200 and for the processor at hand; both must compute the same bits. No expression is
contracted, and a result that is NaN counts as one number, since payloads are free.
"""

from __future__ import annotations

import random
from collections.abc import Callable

C_TYPES = {
    "u8": "unsigned char", "i8": "signed char", "u16": "unsigned short", "i16": "short", "u32": "unsigned",
    "i32": "int", "u64": "unsigned long", "i64": "long", "f16": "_Float16", "f32": "float", "f64": "double",
}  # fmt: skip
INTEGERS = tuple(kind for kind in C_TYPES if kind[0] != "f")
FLOATS = ("f16", "f32", "f64")
# Inputs of every program, by name.
INPUTS = {"a": "i32", "b": "u32", "c": "i64", "d": "u16", "e": "i8", "x": "f32", "y": "f64", "z": "f16"}
OUTPUTS = 8
# Values between which a float of the kind may be converted to the integer.
_BOUNDS = {
    "i32": (-2e9, 2e9), "u32": (0, 4e9), "i64": (-9e18, 9e18), "u64": (0, 1.8e19), "i16": (-3e4, 3e4), "u8": (0, 250),
}  # fmt: skip


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.known = list(INPUTS.items())
        self.lines: list[str] = []
        self.made = 0
        self.depth = 0

    def operand(self, kind: str, among: tuple[str, ...]) -> str:
        """A value converted to a type, mostly one of the last made."""
        wanted = (kind,) if self.random.random() < 0.6 and any(k == kind for _, k in self.known) else among
        found = [name for name, k in self.known if k in wanted]
        if len(found) > 6 and self.random.random() < 0.6:
            found = found[-6:]
        return f"(({C_TYPES[kind]}){self.random.choice(found)})"

    def keep(self, kind: str, expression: str) -> None:
        changed = [name for name, known in self.known if known == kind and name[0] == "t"]
        if self.depth and changed:
            # Inside of a loop or a branch only what exists outside is changed.
            self.lines.append(f"{self.random.choice(changed)} = ({C_TYPES[kind]})({expression});")
            return
        if self.depth:
            return
        name, self.made = f"t{self.made}", self.made + 1
        self.lines.append(f"{C_TYPES[kind]} {name} = ({C_TYPES[kind]})({expression});")
        self.known.append((name, kind))

    def condition(self) -> str:
        """A comparison of two values."""
        kind = self.random.choice(("i32", "u32", "f32", "i64"))
        among = FLOATS if kind in FLOATS else INTEGERS
        sign = self.random.choice(("<", ">", "==", "!=", "<="))
        return f"{self.operand(kind, among)} {sign} {self.operand(kind, among)}"

    def flow(self) -> None:
        """A branch, or a loop of at most 7 passes that may end early, with a few steps inside."""
        self.depth += 1
        if self.random.random() < 0.5:
            self.lines.append(f"if ({self.condition()}) {{")
            self.steps(3)
            self.lines.append("} else {")
            self.steps(2)
        else:
            passes = f"p{self.made}_{len(self.lines)}"
            self.lines.append(
                f"for (unsigned {passes} = 0; {passes} < ({self.operand('u32', INTEGERS)} & 7); {passes}++) {{"
            )
            self.steps(3)
            self.lines.append(f"if ({self.condition()}) {self.random.choice(('break', 'continue'))};")
            self.steps(2)
        self.lines.append("}")
        self.depth -= 1

    def steps(self, count: int) -> None:
        for _ in range(count):
            if self.depth < 3 and self.known[len(INPUTS) :] and self.random.random() < 0.12:
                self.flow()
            else:
                self.step()

    def step(self) -> None:
        chosen = self.random.random()
        if chosen < 0.5:
            kind = self.random.choice((*INTEGERS, "i32", "u32", "i64", "u64"))
            operands = [self.operand(kind, INTEGERS) for _ in range(3)]
            self.keep(kind, self.random.choice(_INTEGER)(self.random, kind, *operands))
        elif chosen < 0.88:
            kind = self.random.choice((*FLOATS, "f32"))
            operands = [self.operand(kind, FLOATS) for _ in range(3)]
            self.keep(kind, self.random.choice(_FLOAT)(self.random, kind, *operands))
        elif chosen < 0.94:
            kind, source = self.random.choice(tuple(_BOUNDS)), self.random.choice(FLOATS)
            low, high = (max(-6e4, min(6e4, x)) if source == "f16" else x for x in _BOUNDS[kind])
            value, cast = self.operand(source, FLOATS), C_TYPES[source]
            self.keep(kind, f"{value} > ({cast}){low} && {value} < ({cast}){high} ? ({C_TYPES[kind]}){value} : 3")
        else:
            self.keep("f32", self.operand("i32", INTEGERS))


Maker = Callable[[random.Random, str, str, str, str], str]


def _bits(kind: str) -> int:
    return int(kind[1:])


def _divide(sign: str) -> Maker:
    def make(_: random.Random, kind: str, a: str, b: str, c: str) -> str:
        if kind[0] == "u":
            # LLVM 22 divides an unsigned number that was sign-extended from 8 bits as one of 24 bits, which is wrong
            # (0xffffffd3 % 2 gives 0xffd3); a product has no bits that it could know.
            a = f"(({C_TYPES[kind]})({a} * ({C_TYPES[kind]})2654435761u))"
        safe = f"({b} == 0 || {b} == -1)" if kind[0] == "i" else f"{b} == 0"
        return f"{safe} ? {a} : {a} {sign} {b}"

    return make


def _of(text: str) -> Maker:
    """An expression of a, b, c, the type T, its unsigned form U and its size W."""

    def make(_: random.Random, kind: str, a: str, b: str, c: str) -> str:
        unsigned = C_TYPES.get(f"u{_bits(kind)}", "")
        words = {
            "a": a,
            "b": b,
            "c": c,
            "T": C_TYPES[kind],
            "U": unsigned,
            "W": str(_bits(kind)),
            "V": str(_bits(kind) - 1),
        }
        return "".join(words.get(part, part) for part in _pieces(text))

    return make


def _pieces(text: str) -> list[str]:
    """Words and what is between them."""
    pieces, word = [], ""
    for letter in text:
        if letter.isalnum() or letter == "_":
            word += letter
        else:
            pieces += [word, letter]
            word = ""
    return [*pieces, word]


def _constant(source: random.Random, kind: str, a: str, b: str, c: str) -> str:
    number = source.choice((2, 3, 5, 7, 10, 16, 64, 100, 127))
    return f"{a} {source.choice('+-*^&|/%')} ({C_TYPES[kind]}){number}"


def _float_constant(source: random.Random, kind: str, a: str, b: str, c: str) -> str:
    return f"{a} {source.choice('+*-')} ({C_TYPES[kind]}){source.choice((0.5, 2.0, -1.0, 3.1415926, 1e-3, 100.0, 0.1))}"


_INTEGER: tuple[Maker, ...] = (
    *(_of(f"a {sign} b") for sign in "+-*&|^"), _of("a << (b & V)"), _of("a >> (b & V)"), _divide("/"), _divide("%"),
    _of("a < b ? a : b"), _of("a > b ? a : b"), _of("((U)a << (b & V)) | ((U)a >> (-(unsigned)b & V))"),
    _of("a <= b ? c : a"), _of("a == b ? c : b"), _of("a == 0 ? W : __builtin_clzll((unsigned long)(U)a) - (64 - W)"),
    _of("a == 0 ? W : __builtin_ctzll((unsigned long)(U)a)"), _of("__builtin_popcountll((unsigned long)(U)a)"),
    _of("__builtin_bswap32((unsigned)a)"), _of("__builtin_bitreverse64((unsigned long)a)"), _of("a < 0 ? -a : a"),
    _of("((__int128)a * b) >> V"), _of("__builtin_elementwise_add_sat((T)a, (T)b)"), _of("~a"), _of("a * b + c"),
    _of("__builtin_elementwise_sub_sat((T)a, (T)b)"), _of("(a << 3) + c"), _of("(a >> 5) & 127"), _of("(a & b) | c"),
    _of("(a & 255) << 8 | (b & 255)"), _of("a ^ b ^ c"), _of("(a < b) + 2 * (b < c) + 4 * (a == c)"), _constant,
    _of("(a & 61680) | (b & ~61680)"), _of("a + b + c"), _of("(a + b) << (c & V)"),
)  # fmt: skip
_FLOAT: tuple[Maker, ...] = (
    *(_of(f"a {sign} b") for sign in "+-*/"), *(_of(f"a {sign} b") for sign in "+*"),
    _of("__builtin_elementwise_fma((T)a, (T)b, (T)c)"), _of("a < b ? a : b"), _of("a > b ? a : b"),
    _of("a == b ? b : c"), _of("-a"), _of("__builtin_elementwise_abs((T)a)"), _of("__builtin_elementwise_floor((T)a)"),
    _float_constant,
    _of("__builtin_elementwise_sqrt((T)__builtin_elementwise_abs((T)a))"), _of("__builtin_elementwise_ceil((T)a)"),
    _of("__builtin_elementwise_trunc((T)a)"), _of("__builtin_elementwise_rint((T)a)"), _of("a == a ? b : (T)1"),
    _of("__builtin_elementwise_copysign((T)a, (T)b)"), _of("a != b ? a - c : c"), _of("a * b - c"),
)  # fmt: skip


def body(seed: int, steps: int) -> str:
    """Statements that read the inputs by their names and write the array ``out`` of 64-bit words at ``i``."""
    writer = _Writer(seed)
    writer.steps(steps)
    lines = list(writer.lines)
    for number, (name, kind) in enumerate(writer.known[-OUTPUTS:]):
        place = f"out[i * {OUTPUTS} + {number}]"
        if kind in FLOATS:
            bits = C_TYPES[f"u{_bits(kind)}"]
            copy = f"__builtin_memcpy(&bits, &{name}, sizeof bits);"
            lines.append(f"{{ {bits} bits = 7; if ({name} == {name}) {copy} {place} = bits; }}")
        else:
            lines.append(f"{place} = (unsigned long){name};")
    return "\n".join(lines)


def _signature(qualifier: str) -> str:
    pointers = [f"{C_TYPES[kind]} {qualifier}* in_{name}" for name, kind in INPUTS.items()]
    return ", ".join([*pointers, f"unsigned long {qualifier}* out"])


_LOADS = " ".join(f"{C_TYPES[kind]} {name} = in_{name}[i];" for name, kind in INPUTS.items())


def device_source(seeds: range, steps: int) -> str:
    """One kernel ``program_SEED`` for each seed, one thread an element, 64 threads a work-group."""
    signature = _signature("__attribute__((address_space(1)))")
    index = "unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();"
    head = "__attribute__((amdgpu_kernel)) void"
    return "\n".join(f"{head} program_{n}({signature}) {{ {index} {_LOADS}\n{body(n, steps)}\n}}" for n in seeds)


def host_source(seeds: range, steps: int) -> str:
    """The same as functions that loop over ``count`` elements."""
    signature = _signature("")
    loop = "for (unsigned i = 0; i < count; i++) {"
    return "\n".join(
        f"void program_{n}({signature}, unsigned count) {{ {loop} {_LOADS}\n{body(n, steps)}\n}} }}" for n in seeds
    )
