"""A machine model as a table: every number with what it rests on, its source and its confidence."""

from __future__ import annotations

from typing import Any, Final

from solar.errors import HardwareError
from solar.hardware import TOLERANCE, Figure, Machine, Rate, lint
from solbench.errors import IntegrityError
from solbench.release.schemas import machine as machine_of
from solbench.site import text
from solbench.site.cells import Cell, number, ref
from solbench.site.links import Links
from solbench.site.records import Record
from solbench.store import Descriptor

MEMORY: Final = "memory"


def modelled(record: Record[dict[str, Any]]) -> Machine:
    """The machine that a ``hardware`` artifact describes; :class:`IntegrityError` where it describes none."""
    try:
        return machine_of(record.value)
    except HardwareError as error:
        raise IntegrityError(f"bounds: {record.name}: {error}") from None


def rate_name(engine: str, form: str) -> str:
    """What the rate of an engine in a format is called."""
    return f"{engine}, {form}"


def machine_model(links: Links, record: Record[dict[str, Any]] | None) -> dict[str, Any] | None:
    """Rates, figures and lint result of a ``hardware`` artifact; ``None`` where the release has no model."""
    if record is None:
        return None
    machine = modelled(record)
    source = record.descriptor
    rates = [
        _rate(links, source, rate_name(engine, name), rate, "op")
        for engine, formats in machine.engines.items()
        for name, rate in formats.items()
    ]
    rates.append(_rate(links, source, MEMORY, machine.memory, "B"))
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
        "kind": "calibrated: measured, times a margin" if machine.origin == "calibrated" else "from specifications",
        "rates": rates,
        "figures": figures,
        "lint": lint(machine),
        "linted": ""
        if machine.origin == "calibrated"
        else f"each rate a clock times its clock is within {text.percent(TOLERANCE)} of the published figure",
    }


def _rate(links: Links, source: Descriptor, name: str, rate: Rate, unit: str) -> dict[str, Any]:
    per_s = f"{unit}/s"
    if rate.measured_per_s is not None and rate.margin is not None:
        basis = f"{text.quantity(rate.measured_per_s, per_s)} measured, times a margin of {text.ratio(rate.margin)}"
        check = "no published figure to hold it against; measure it again"
    else:
        assert rate.per_clock and rate.published_per_s and rate.published_clock_hz
        clock = text.quantity(rate.published_clock_hz, "Hz")
        amount = f"{text.grouped(round(rate.per_clock))}{text.SPACE}{unit}"
        basis = f"{amount} a clock; "
        basis += f"published: {text.quantity(rate.published_per_s, per_s)} at {clock}"
        product = rate.per_clock * rate.published_clock_hz
        off = _off(product / rate.published_per_s - 1)
        check = f"{amount} × {clock} = {text.quantity(product, per_s)}, {off}"
    return {
        "name": name,
        "value": number(links, rate.per_s, text.quantity(rate.per_s, per_s), source),
        "basis": Cell(basis, href=links.object(source), title=f"hardware {source.digest}"),
        "check": check,
        "source": rate.source,
        "confidence": rate.confidence + ("" if rate.dense else ", with structured sparsity"),
    }


def _off(share: float) -> str:
    """How far a product lies from the published figure, in words."""
    if abs(share) < 0.0005:
        return "as published"
    return f"{text.percent(abs(share))} {'above' if share > 0 else 'below'} the published figure"


def _figure(links: Links, source: Descriptor, name: str, figure: Figure, unit: str) -> dict[str, Any]:
    shown = text.capacity(figure.value) if unit == "B" else text.quantity(figure.value, unit)
    return {
        "name": name,
        "value": number(links, figure.value, shown, source),
        "source": figure.source,
        "confidence": figure.confidence,
    }
