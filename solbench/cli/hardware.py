"""``solbench hardware``: machine models, every number with its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solar.hardware import Machine, Rate

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def hardware() -> None:
    """Show and lint machine models.

    A model is a packaged one by name (gfx1200, gfx942, sm_90), your own YAML file (`pydoc solar.hardware` describes
    the form), or cpu: this processor, probed at first use.
    """


@hardware.command()
@click.argument("model", metavar="NAME|FILE")
@_json
def show(model: str, as_json: bool) -> None:
    """Print one model: rates, the figures they were checked against, caches, and where each number is from."""
    from solbench.bounds import machine_here
    from solbench.cli import printable

    machine = machine_here(model)
    if as_json:
        rates = {
            engine: {name: rate.per_s for name, rate in formats.items()} for engine, formats in machine.engines.items()
        }
        bound = {"ops_per_s": rates, "bytes_per_s": machine.memory.per_s}
        click.echo(json.dumps({"model": machine.to_dict(), "bound_uses": bound}, indent=2))
        return
    for line in _lines(machine):
        click.echo(printable(line))


@hardware.command()
@click.argument("models", metavar="[NAME|FILE]...", nargs=-1)
@_json
def lint(models: tuple[str, ...], as_json: bool) -> None:
    """Check models: rate per clock times clock against the published figure within 2 %, dense figures, cache sizes.

    Without arguments every packaged model. Exit 1 if one contradicts itself, 2 if one cannot be read.
    """
    from solar import hardware as library
    from solar.errors import HardwareError
    from solbench.bounds import machine_here
    from solbench.cli import printable

    rows: list[dict[str, object]] = []
    code = 0
    for model in models or tuple(library.names()):
        try:
            problems = library.lint(machine_here(model) if model == "cpu" else library.read(model))
            code = max(code, 1 if problems else 0)
        except HardwareError as error:
            problems = [str(error).removeprefix(f"{model}: ")]
            code = 2
        rows.append({"model": model, "problems": problems})
        if not as_json:
            for line in problems or ["ok"]:
                click.echo(printable(f"{model}: {line}").replace("\n", " "), err=bool(problems))
    if as_json:
        click.echo(json.dumps({"verdict": ("ok", "contradiction", "unreadable")[code], "models": rows}, indent=2))
    if code:
        click.get_current_context().exit(code)


def _lines(machine: Machine) -> Iterator[str]:
    yield f"{machine.name}: {machine.device} ({machine.origin})"
    clock = machine.clock
    if clock is not None:
        yield f"highest clock  {clock.value / 1e9:g} GHz  [{clock.confidence}] {clock.source}"
    for engine, formats in machine.engines.items():
        yield f"\n{engine}"
        for name, rate in formats.items():
            yield f"  {name:<9} {_rate(rate, 1e12, 'Top/s', 'op')}"
    yield f"\nmemory\n  {'':<9} {_rate(machine.memory, 1e9, 'GB/s', 'B')}"
    for name, figure in [*machine.caches.items(), ("absorbed stores", machine.absorbed_store_bytes)]:
        yield f"  {name:<16} {int(figure.value):>12,}  [{figure.confidence}] {figure.source}"


def _rate(rate: Rate, scale: float, unit: str, one: str) -> str:
    if rate.measured_per_s is not None:
        origin = f"measured {rate.measured_per_s / scale:.4g} x {rate.margin:g}"
    else:
        assert rate.per_clock and rate.published_per_s and rate.published_clock_hz
        origin = (
            f"{rate.per_clock:>9,.0f} {one}/clk, published {rate.published_per_s / scale:.5g} at "
            f"{rate.published_clock_hz / 1e9:g} GHz"
        )
    kind = "dense" if rate.dense else "sparse"
    return f"{rate.per_s / scale:>9.5g} {unit}  {origin}  [{kind}, {rate.confidence}] {rate.source}"
