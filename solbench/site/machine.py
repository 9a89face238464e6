"""A machine model as a table: every number with what it rests on, its source and its confidence."""

from __future__ import annotations

from typing import Any

from solar.errors import HardwareError
from solar.hardware import Figure, Rate, lint
from solbench.errors import IntegrityError
from solbench.release.schemas import machine as machine_of
from solbench.site import text
from solbench.site.cells import Cell, number, ref
from solbench.site.links import Links
from solbench.site.records import Record
from solbench.store import Descriptor


def machine_model(links: Links, record: Record[dict[str, Any]] | None) -> dict[str, Any] | None:
    """Rates, figures and lint result of a ``hardware`` artifact; ``None`` where the release has no model."""
    if record is None:
        return None
    try:
        machine = machine_of(record.value)
    except HardwareError as error:
        raise IntegrityError(f"bounds: {record.name}: {error}") from None
    source = record.descriptor
    rates = [
        _rate(links, source, f"{engine}, {name}", rate, "op")
        for engine, formats in machine.engines.items()
        for name, rate in formats.items()
    ]
    rates.append(_rate(links, source, "memory", machine.memory, "B"))
    figures = []
    if machine.clock is not None:
        figures.append(_figure(links, source, "highest clock that can be set", machine.clock, "Hz"))
    named = {"l2_bytes": "second-level cache", "last_level_bytes": "last-level cache"}
    figures += [_figure(links, source, named.get(name, name), f, "B") for name, f in machine.caches.items()]
    absorbed = machine.absorbed_store_bytes
    figures.append(_figure(links, source, "stores that the cache may absorb inside the timed window", absorbed, "B"))
    return {
        "ref": ref(links, "machine model", source),
        "device": machine.device,
        "calibrated": machine.origin == "calibrated",
        "kind": "calibrated: measured, times a margin" if machine.origin == "calibrated" else "from specifications",
        "rates": rates,
        "figures": figures,
        "lint": lint(machine),
    }


def _rate(links: Links, source: Descriptor, name: str, rate: Rate, unit: str) -> dict[str, Any]:
    per_s = f"{unit}/s"
    if rate.measured_per_s is not None and rate.margin is not None:
        basis = f"{text.quantity(rate.measured_per_s, per_s)} measured, times a margin of {text.ratio(rate.margin)}"
    else:
        assert rate.per_clock and rate.published_per_s and rate.published_clock_hz
        clock = text.quantity(rate.published_clock_hz, "Hz")
        basis = f"{text.grouped(round(rate.per_clock))}{text.SPACE}{unit} a clock; "
        basis += f"published: {text.quantity(rate.published_per_s, per_s)} at {clock}"
    return {
        "name": name,
        "value": number(links, rate.per_s, text.quantity(rate.per_s, per_s), source),
        "basis": Cell(basis, href=links.object(source), title=f"hardware {source.digest}"),
        "source": rate.source,
        "confidence": rate.confidence + ("" if rate.dense else ", with structured sparsity"),
    }


def _figure(links: Links, source: Descriptor, name: str, figure: Figure, unit: str) -> dict[str, Any]:
    shown = text.capacity(figure.value) if unit == "B" else text.quantity(figure.value, unit)
    return {
        "name": name,
        "value": number(links, figure.value, shown, source),
        "source": figure.source,
        "confidence": figure.confidence,
    }
