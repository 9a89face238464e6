"""A measurement set on the page of its target: protocol, controls, device and environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from solbench.model.trace import Control, Protocol, SetHeader
from solbench.site import text
from solbench.site.cells import Cell, missing, number, protocol_words, ref
from solbench.site.links import Links
from solbench.site.records import MeasurementSet
from solbench.store import Descriptor

# What each control of :mod:`solbench.evaluate.controls` does; a name that is not here is shown alone.
_CALLS: Final = {
    "empty": "does nothing",
    "copy": "copies a tensor of half the last-level cache",
    "sleep": "waits for 10 ms",
    "product": "multiplies two square matrices",
    "fill": "writes half of the last-level cache",
}


def measurement_set(links: Links, found: MeasurementSet) -> dict[str, Any]:
    header = found.header.value
    source = found.header.descriptor
    protocol = header.protocol
    cards = [{name: value for name, value in card.items() if name != "controls"} for card in header.cards]
    return {
        "name": found.header.name.removesuffix("/header"),
        "ref": ref(links, "measurement set", source),
        "facts": [
            ("protocol", Cell(protocol_words(protocol.name))),
            ("processes a solution", number(links, protocol.processes, text.grouped(protocol.processes), source)),
            ("samples a process", number(links, protocol.samples, text.grouped(protocol.samples), source)),
            *_adaptive(links, protocol, source),
            (
                "longest call attempted",
                number(links, protocol.max_call_s, text.quantity(protocol.max_call_s, "s"), source),
            ),
            ("isolation", Cell(text.listed(protocol.isolation) or "none")),
            (
                "launch floor",
                number(links, header.floor_s, text.quantity(header.floor_s, "s"), source, "the time of an empty call"),
            ),
            ("clocks", Cell(header.clocks)),
            ("traces", Cell(text.grouped(found.traces), "one for each workload and solution that was run")),
            ("omissions", Cell(text.grouped(found.omissions), "left out, each with its reason")),
        ],
        "controls": [_control(links, source, where, control) for where, control in _controls(header)],
        "places": any(where for where, _ in _controls(header)),
        "device": text.flat({**header.device, "cards": cards} if cards else header.device),
        "environment": text.flat(header.environment),
    }


def _controls(header: SetHeader) -> Iterator[tuple[str, Control]]:
    """The controls of a set, or of each of its cards: (uuid or "", control)."""
    yield from (("", control) for control in header.controls or ())
    for card in header.cards:
        yield from ((str(card["uuid"]), Control.load(entry, "control")) for entry in card.get("controls") or ())


def _control(links: Links, source: Descriptor, where: str, control: Control) -> dict[str, Any]:
    def time(value: float | None, words: str) -> Cell:
        return missing(words) if value is None else number(links, value, text.quantity(value, "s"), source)

    return {
        "where": where,
        "name": control.name,
        "call": _CALLS.get(control.name, ""),
        "times": [
            number(links, control.low_s, text.quantity(control.low_s, "s"), source),
            time(control.high_s, "no limit"),
            time(control.event_s, "void samples"),
            time(control.clock_s, "void samples"),
        ],
        "verdict": "as it must" if control.ok else "reads wrong",
        "state": "" if control.ok else "failed",
    }


def _adaptive(links: Links, protocol: Protocol, source: Descriptor) -> list[tuple[str, Cell]]:
    """Where the number of samples depends on what they say."""
    if protocol.max_samples is None or protocol.precision is None:
        return []
    return [
        ("at most", number(links, protocol.max_samples, text.grouped(protocol.max_samples), source)),
        ("until both medians are known to", Cell(f"{100 * protocol.precision:g}{text.SPACE}%")),
    ]
