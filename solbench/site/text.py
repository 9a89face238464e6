"""How values read on a page: numbers with units and three significant digits, hostile text made visible, source code.

Rounding is decimal and exact, so that a page has the same bytes on every machine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from jinja2 import Undefined
from markupsafe import Markup
from pygments import lex
from pygments.lexers import CppLexer, PythonLexer
from pygments.token import STANDARD_TYPES

from solbench.errors import SolbenchError

SPACE: Final = "\u00a0"
MINUS: Final = "\u2212"
_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
# Smallest and largest power of ten that a unit is written with.
_RANGES = {"s": (-9, 0), "op/B": (0, 0)}
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
# Letters by category, yet drawn as nothing.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class Lines(str):
    """Text whose line breaks and tabs are meant: source code, a log."""


class _Shown(dict[int, str]):
    """A table for ``str.translate``: what each character is shown as, filled as they come."""

    def __init__(self, kept: str) -> None:
        super().__init__({ord(character): character for character in kept})

    def __missing__(self, point: int) -> str:
        character = chr(point)
        hidden = unicodedata.category(character) in _HIDDEN or character in _BLANK
        self[point] = character.encode("unicode_escape").decode() if hidden else character
        return self[point]


_SHOWN, _SHOWN_IN_LINES = _Shown(""), _Shown("\n\t")


def visible(text: str) -> str:
    """``text`` with control, bidi, zero-width, private and blank characters written as ``\\u202e`` and the like."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_SHOWN_IN_LINES if isinstance(text, Lines) else _SHOWN)


def printed(value: object) -> object:
    """What the templates may print: text made visible, and integers. Everything else is a defect of a page."""
    if isinstance(value, str):
        return value if isinstance(value, Markup) else visible(value)
    if isinstance(value, Undefined):
        return str(value)  # raises, as the environment is strict
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SolbenchError(f"site: a template prints {value!r}; give it as text, missing values by name")


def _scaled(value: float, digits: int, unit: str) -> tuple[Decimal, int]:
    """``value`` as an exact decimal, and the power of ten of the prefix that shows ``digits`` digits best."""
    exact = Decimal(repr(value))
    exponent = int(f"{exact:.{digits - 1}e}".partition("e")[2]) if value else 0
    low, high = _RANGES.get(unit, (0, 18))
    return exact, min(max(3 * (exponent // 3), low), high)


def _fixed(exact: Decimal, power: int, digits: int) -> str:
    scaled = exact.scaleb(-power)
    if not scaled:
        return "0"
    exponent = int(f"{scaled:.{digits - 1}e}".lower().partition("e")[2])
    return f"{scaled:.{max(digits - 1 - exponent, 0)}f}".replace("-", MINUS)


# A page says most of its numbers more than once.
@lru_cache(maxsize=1 << 14)
def quantity(value: float, unit: str, digits: int = 3) -> str:
    """``1.23e-05, "s"`` -> ``12.3 µs``; ``3.2e11, "B/s"`` -> ``320 GB/s``: SI prefix, ``digits`` significant digits."""
    exact, power = _scaled(value, digits, unit)
    return f"{_fixed(exact, power, digits)}{SPACE}{_PREFIXES[power]}{unit}"


def significant(value: float) -> str:
    """A number without a unit, three significant digits: ``0.00125``, ``1.25e−7``."""
    exact = Decimal(repr(value))
    if exact and not -4 <= exact.adjusted() < 6:
        digits, _, exponent = f"{exact:.2e}".partition("e")
        return f"{digits}e{int(exponent)}".replace("-", MINUS)
    return _fixed(exact, 0, 3)


def step(value: float, size: float, unit: str, like: float) -> str:
    """A step of an axis, a multiple of ``size``: to the last digit of ``size``, with the prefix of ``like``."""
    _, power = _scaled(like, 1, unit)
    last = Decimal(repr(size)).scaleb(-power)
    places = max(-int(f"{last:e}".partition("e")[2]), 0)
    shown = f"{Decimal(repr(value)).scaleb(-power):.{places}f}".replace("-", MINUS)
    return f"{shown}{SPACE}{_PREFIXES[power]}{unit}"


def span(low: float, high: float, unit: str, like: float | None = None) -> str:
    """An interval in one unit, chosen by ``like``: ``12.1 – 12.9 µs``."""
    _, power = _scaled(high if like is None else like, 3, unit)
    ends = [_fixed(Decimal(repr(end)), power, 3) for end in (low, high)]
    return f"{ends[0]}{SPACE}–{SPACE}{ends[1]}{SPACE}{_PREFIXES[power]}{unit}"


def capacity(value: float) -> str:
    """Bytes of a cache, which come in powers of two: ``32 MiB``."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size and value % size == 0:
            return f"{grouped(int(value) // size)}{SPACE}{unit}"
    return quantity(value, "B")


def score(value: float) -> str:
    """S with three decimals; 0 and 1 as such, for they are verdicts and not roundings."""
    if 0 < value < 0.0005:
        return f"<{SPACE}0.001"
    return str(int(value)) if value in (0, 1) else f"{Decimal(repr(value)):.3f}"


def ratio(value: float) -> str:
    """A factor: ``3.42×``."""
    return f"{_fixed(Decimal(repr(value)), 0, 3)}×"


def percent(fraction: float) -> str:
    """``0.969`` -> ``96.9 %``."""
    exact = Decimal(repr(fraction)) * 100
    return f"{exact:.1f}".removesuffix(".0") + f"{SPACE}%"


def share(fraction: float) -> str:
    """A share of a whole, to be read below others: always one decimal, but for none and all. ``0.39`` -> ``39.0 %``."""
    return percent(fraction) if fraction in (0, 1) else f"{Decimal(repr(fraction)) * 100:.1f}{SPACE}%"


def exact(value: float) -> str:
    """Every digit that the object holds, for a tooltip and for sorting."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def grouped(value: int) -> str:
    """``1048576`` -> ``1 048 576`` with thin no-break spaces."""
    return f"{value:,}".replace(",", "\u202f")


def short_digest(digest: str) -> str:
    """First twelve hex digits of ``blake3:…``."""
    return digest.removeprefix("blake3:")[:12] + "…"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 workload``, ``3 workloads``."""
    return f"{grouped(count)} {one if count == 1 else many or one + 's'}"


def sentence(words: str) -> str:
    """With a capital letter and a full stop."""
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def listed(items: Iterable[str]) -> str:
    return ", ".join(items)


def shape(axes: Mapping[str, int], names: Iterable[str]) -> str:
    """Sizes of the named axes: ``M 128 · N 64``."""
    return f"{SPACE}· ".join(f"{name}{SPACE}{grouped(axes[name])}" for name in names)


def generator(value: Any) -> str:
    """One line for an input generator: ``normal(mean 0, std 1/sqrt(K))``."""
    fields = value.as_dict()
    kind = fields.pop("type")
    if kind in ("constant", "scalar"):
        return f"constant {_plain(fields['value'])}"
    if kind == "values":
        return f"values (frozen, {plural(len(fields['values']), 'number')})"
    parts = [f"{_words(name)} {_plain(entry)}" for name, entry in fields.items() if entry is not None]
    return f"{_words(kind)}({', '.join(parts)})" if parts else _words(kind)


def check(value: Any) -> str:
    """One line for an output check, the formula with its tolerances."""
    match value.type:
        case "numeric":
            rule = {
                "elementwise": f"|o − r| ≤ {_plain(value.atol)} + {_plain(value.rtol)}·|r|, element by element",
                "normalized_max": f"max|o − r| ≤ {_plain(value.atol)} + {_plain(value.rtol)}·max|r|",
            }[value.mode]
            if value.required_matched_ratio < 1:
                rule += f", for at least {percent(value.required_matched_ratio)} of the elements"
            if value.max_error_cap is not None:
                rule += f", no error above {_plain(value.max_error_cap)}"
            return rule + ("; −inf allowed where the reference has it" if value.allow_negative_inf else "")
        case "exact":
            return "equal, element by element"
        case "code_distance":
            unit = "code values" if value.mode == "value" else "raw bits"
            rule = f"distance of {unit} ≤ {value.max_distance}"
            if value.min_identical_fraction > 0:
                rule += f", at least {percent(value.min_identical_fraction)} identical"
            return rule
        case "topk_routing" | "sigmoid_routing":
            return (
                f"top {_plain(value.topk)} ids equal as sets (ties within {_plain(value.tie_atol)}), "
                f"weights by id within {_plain(value.weight_atol)}"
            )
    return _words(value.type)


def tensor_shape(entries: Sequence[str] | None) -> str:
    """``[M, K]``; a Python scalar says so."""
    return "scalar" if entries is None else "[" + ", ".join(entries) + "]"


def paragraphs(text: str) -> list[str]:
    """Prose split at blank lines, its other white space collapsed."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


# A reference is shown as its problem's and as its solution's.
@lru_cache(maxsize=256)
def highlighted(source: str, path: str = "x.py") -> tuple[tuple[str, Lines], ...]:
    """(CSS class, text) of every token of a Python or C++ source; the class is ``""`` for plain text."""
    lexer = (PythonLexer if path.endswith(".py") else CppLexer)(stripnl=False, ensurenl=False)
    tokens: list[tuple[str, Lines]] = []
    for kind, piece in lex(source.replace("\r\n", "\n"), lexer):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        name = STANDARD_TYPES[kind]
        if tokens and tokens[-1][0] == name:
            tokens[-1] = (name, Lines(tokens[-1][1] + piece))
        else:
            tokens.append((name, Lines(piece)))
    return tuple(tokens)


def flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """(dotted name, text) of every leaf of a JSON value; null reads "not stated", and a name's unit is written out.

    A list of plain records has one line a record.
    """
    if isinstance(value, Mapping):
        pairs = [pair for name in sorted(value) for pair in flat(value[name], f"{prefix}.{name}" if prefix else name)]
        return pairs or [(prefix, "none")]
    if isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        return [pair for i, item in enumerate(value) for pair in _item(item, f"{prefix}[{i}]")]
    if isinstance(value, list):
        return [(prefix, listed(_plain(item) for item in value) or "none")]
    return [(prefix, _leaf(prefix, value))]


def _item(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and not any(isinstance(leaf, (Mapping, list)) for leaf in value.values()):
        return [(prefix, listed(f"{name} {_leaf(name, value[name])}" for name in sorted(value)) or "none")]
    return flat(value, prefix)


def _leaf(name: str, value: Any) -> str:
    """``value`` with the unit that its name ends in: ``event_s``, ``flush_bytes``, ``cpu_hz``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        match re.split(r"[._]", name)[-1]:
            case "bytes":
                return capacity(value)
            case "s" if not name.endswith("per_s"):
                return quantity(value, "s")
            case "hz":
                return quantity(value, "Hz")
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e6 else repr(value)
    return str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")
