"""What an attestation says was run and compared, in words; a field that is not as :mod:`solar.attest` writes it is
shown as it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from solbench.site import text


def facts(predicate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what, words) of every field of a replay's result."""
    found = []
    for name, words in _WORDS.items():
        if name in predicate:
            try:
                found.append((_NAMES.get(name, name), words(predicate[name])))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                found += text.flat(predicate[name], name)
    rest = {name: value for name, value in predicate.items() if name not in _WORDS}
    return found + (text.flat(rest) if rest else [])


def _sizes(value: str) -> str:
    return {"whole": "those of the workload", "small": "smaller ones, at which the program is the same"}[value]


def _reduced(value: Mapping[str, Any]) -> str:
    pairs = ((name, *pair) for name, pair in value.items())
    return text.listed(f"{name} {text.grouped(whole)} → {text.grouped(small)}" for name, whole, small in pairs)


def _listed(value: list[Any]) -> str:
    return text.listed(map(str, value)) or "none"


def _tolerance(value: Mapping[str, Any]) -> str:
    return "; ".join(f"{output}: {_rule(rule)}" for output, rule in value.items())


def _rule(rule: Mapping[str, Any]) -> str:
    limits = []
    if "relative" in rule:
        limits.append(f"relative error up to {text.significant(rule['relative'])}")
    if "differing_fraction" in rule:
        limits.append(f"up to {text.share(rule['differing_fraction'])} of the elements may differ")
    return text.listed([str(rule["rule"]), *limits])


def _float64(value: Mapping[str, Any]) -> str:
    if not value["outputs"]:
        return "no output has a finite error bound to be held against"
    bounds = text.exact(value["error_bounds"])
    return f"{_listed(value['outputs'])}: reference and replay both within {bounds} error bounds of the exact value"


def _gradients(value: Mapping[str, Any]) -> str:
    if "reason" in value:
        return f"not compared: {value['reason']}"
    limit = text.significant(value["relative"])
    return f"of {_listed(value['outputs'])} by {_listed(value['inputs'])}: relative error up to {limit}"


def _in_place(value: Mapping[str, Any]) -> str:
    return text.listed(f"{name} ({source})" for name, source in value.items()) or "none"


def _shapes(value: Mapping[str, Any]) -> str:
    sides = (f"{name} {list(extents)}" for side in ("inputs", "outputs") for name, extents in value[side].items())
    return text.listed(sides)


_NAMES: Final = {
    "path": "traced by",
    "kinds": "inputs drawn",
    "in_place": "written in place",
    "float64": "against float64",
    "reduced": "axes made smaller",
    "shapes": "shapes of the runs",
}
_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "path": str,
    "kinds": _listed,
    "seeds": _listed,
    "sizes": _sizes,
    "reduced": _reduced,
    "tolerance": _tolerance,
    "float64": _float64,
    "gradients": _gradients,
    "in_place": _in_place,
    "shapes": _shapes,
}
