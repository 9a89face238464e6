"""The page Hardware: the machine models of all targets side by side, each number with its source and its check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from solar.hardware import ENGINES, FORMATS, Machine
from solbench.site import text
from solbench.site.cells import Cell, missing
from solbench.site.links import Links
from solbench.site.machine import MEMORY, machine_model, modelled, rate_name
from solbench.site.records import Book
from solbench.store import Descriptor


def hardware_page(book: Book, links: Links) -> dict[str, Any]:
    models = {target.name: machine_model(links, target.hardware) for target in book.targets}
    rows = {name: _rows(model) for name, model in models.items() if model is not None}
    records = {target.name: target.hardware for target in book.targets if target.hardware is not None}
    machines = {name: modelled(record) for name, record in records.items()}
    balances = {name: _balances(links, machines[name], record.descriptor) for name, record in records.items()}
    # A calibrated model is of the machine that it was measured on, which `show` would not tell.
    published = [name for name, machine in machines.items() if machine.origin == "specified"]
    return {
        "show_command": f"solbench hardware show {published[0]}" if published else "",
        "targets": [
            {
                "name": target.name,
                "href": links.page("target", target.name),
                "measured": target.state.device or "none",
                "machine": models[target.name],
            }
            for target in book.targets
        ],
        "names": list(records),
        "rows": _side_by_side(rows, [_rates_in_order(), *rows.values()]),
        "balances": _side_by_side(balances, [_rates_in_order()]),
        "sources": [
            {"target": name, "href": links.page("target", name), **row}
            for number in _order([_rates_in_order(), *rows.values()])
            for name, found in rows.items()
            if (row := found.get(number)) is not None
        ],
    }


def _rates_in_order() -> list[str]:
    """Every rate that a model may have, as models list them."""
    return [MEMORY, *(rate_name(engine, form) for engine in ENGINES for form in FORMATS)]


def _rows(model: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rates and figures of one model by what they are called. A figure rests on its source alone."""
    alone = {"basis": Cell("its source alone"), "check": "see the source"}
    return {row["name"]: {**alone, **row} for row in (*model["rates"], *model["figures"])}


def _order(names: Sequence[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for group in names for name in group))


def _side_by_side(
    columns: Mapping[str, Mapping[str, Mapping[str, Any]]], names: Sequence[Iterable[str]]
) -> list[dict[str, Any]]:
    """A row for each name that a column knows, in the order of ``names``; a cell without one says so."""
    none = {"value": missing("none"), "confidence": ""}
    return [
        {"name": name, "cells": [column.get(name, none) for column in columns.values()]}
        for name in _order(names)
        if any(name in column for column in columns.values())
    ]


def _balances(links: Links, machine: Machine, source: Descriptor) -> dict[str, dict[str, Any]]:
    """Operations that an engine does in the time in which the memory moves one byte, by the rate's name."""
    found = {}
    for engine, formats in machine.engines.items():
        for form, rate in formats.items():
            value = rate.per_s / machine.memory.per_s
            title = f"{text.exact(value)}, from two rates in {source.kind} {source.digest}"
            shown = text.quantity(value, "op/B")
            cell = Cell(shown, href=links.object(source), title=title, sort=text.exact(value))
            found[rate_name(engine, form)] = {"value": cell, "confidence": ""}
    return found
