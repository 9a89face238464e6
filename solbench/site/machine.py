"""A machine model as tables: every number with its unit, source and confidence, whatever fields the model has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solbench.site import text
from solbench.site.cells import Cell, number, ref
from solbench.site.links import Links
from solbench.site.records import Record

# A unit is the end of a field's name.
_UNITS = (
    ("_bytes_per_s", "B/s"),
    ("_ops_per_s", "op/s"),
    ("_flops_per_s", "FLOP/s"),
    ("_per_s", "op/s"),
    ("_bytes", "B"),
    ("_hz", "Hz"),
    ("_s", "s"),
)


def machine_model(links: Links, record: Record[dict[str, Any]] | None) -> dict[str, Any] | None:
    """Sourced numbers and plain facts of a ``hardware`` artifact; ``None`` where the release has no model."""
    if record is None:
        return None
    numbers = [_row(links, record, name, leaf) for name, leaf in _sourced(record.value, "")]
    facts = text.flat(_without_sourced(record.value))
    return {
        "ref": ref(links, "machine model", record.descriptor),
        "numbers": numbers,
        "more": any(row["more"] for row in numbers),
        "facts": [(name, words) for name, words in facts if name != "schema"],
    }


def _sourced(value: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(dotted name, leaf) of everything that has a value and a source."""
    if isinstance(value, Mapping):
        if "value" in value and "source" in value:
            yield name, value
            return
        for key in sorted(value):
            yield from _sourced(value[key], f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            label = item.get("name") if isinstance(item, Mapping) else None
            yield from _sourced(item, f"{name}.{label}" if isinstance(label, str) else f"{name}[{position}]")


def _without_sourced(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: _without_sourced(item) for key, item in value.items()}
        return None if "value" in value and "source" in value else {k: v for k, v in kept.items() if v is not None}
    if isinstance(value, list):
        return [kept for item in value if (kept := _without_sourced(item)) not in (None, {})]
    return value


def _row(links: Links, record: Record[dict[str, Any]], name: str, leaf: Mapping[str, Any]) -> dict[str, Any]:
    value = leaf["value"]
    more = {key: item for key, item in leaf.items() if key not in ("value", "source", "confidence", "unit")}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        unit = leaf.get("unit") or next((unit for end, unit in _UNITS if name.endswith(end)), "")
        shown = (
            text.quantity(value, str(unit)) if unit else text.grouped(value) if isinstance(value, int) else str(value)
        )
        cell = number(links, value, shown, record.descriptor)
    else:
        cell = Cell(text.flat(value)[0][1])
    return {
        "name": name,
        "value": cell,
        "source": str(leaf["source"]),
        "confidence": str(leaf.get("confidence", "not stated")),
        "more": text.listed(f"{key.replace('_', ' ')} {words}" for key, words in text.flat(more)) if more else "",
    }
