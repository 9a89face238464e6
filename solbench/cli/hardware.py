"""``solbench hardware``: machine models, every number with its source."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from solbench.errors import InputError

if TYPE_CHECKING:
    from solar.hardware import Machine, Rate

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def hardware() -> None:
    """Show and lint machine models.

    A model is a packaged one by name (gfx1200, gfx942, sm_90) or your own YAML file; `pydoc solar.hardware` describes
    the form.
    """


@hardware.command()
@click.argument("model", metavar="NAME|FILE")
@_json
def show(model: str, as_json: bool) -> None:
    """Print one model: rates, the figures they were checked against, caches, and where each number is from."""
    from solar.errors import HardwareError
    from solar.hardware import load

    try:
        machine = load(model)
    except HardwareError as error:
        raise InputError(model, _without(model, str(error))) from None
    if as_json:
        rates = {
            engine: {name: rate.per_s for name, rate in formats.items()} for engine, formats in machine.engines.items()
        }
        bound = {"ops_per_s": rates, "bytes_per_s": machine.memory.per_s}
        click.echo(json.dumps({"model": machine.to_dict(), "bound_uses": bound}, indent=2))
        return
    _print(machine)


@hardware.command()
@click.argument("models", metavar="[NAME|FILE]...", nargs=-1)
@_json
def lint(models: tuple[str, ...], as_json: bool) -> None:
    """Check models: rate per clock times clock against the published figure, within 2 %.

    Without arguments every packaged model. Exit 1 if one contradicts itself, 2 if one cannot be read.
    """
    from solar import hardware as library
    from solar.errors import HardwareError

    rows: list[dict[str, object]] = []
    code = 0
    for model in models or tuple(library.names()):
        try:
            problems = library.lint(library.read(model))
            code = max(code, 1 if problems else 0)
        except HardwareError as error:
            problems = [_without(model, str(error))]
            code = 2
        rows.append({"model": model, "problems": problems})
        if not as_json:
            click.echo(f"{model}: " + ("ok" if not problems else problems[0]), err=bool(problems))
            for problem in problems[1:]:
                click.echo(f"{model}: {problem}", err=True)
    if as_json:
        click.echo(json.dumps({"verdict": ("ok", "contradiction", "unreadable")[code], "models": rows}, indent=2))
    if code:
        sys.exit(code)


def _without(model: str, message: str) -> str:
    """The message without the file that it begins with."""
    return message.removeprefix(f"{model}: ")


def _print(machine: Machine) -> None:
    click.echo(f"{machine.name}: {machine.device} ({machine.origin})")
    if machine.clock is not None:
        click.echo(
            f"highest clock  {machine.clock.value / 1e9:g} GHz  [{machine.clock.confidence}] {machine.clock.source}"
        )
    for engine, formats in machine.engines.items():
        click.echo(f"\n{engine}")
        for name, rate in formats.items():
            click.echo(f"  {name:<9} {_rate(rate, 1e12, 'Top/s', 'op')}")
    click.echo(f"\nmemory\n  {'':<9} {_rate(machine.memory, 1e9, 'GB/s', 'B')}")
    for cache, figure in machine.caches.items():
        click.echo(f"  {cache:<16} {int(figure.value):>12,}  [{figure.confidence}] {figure.source}")
    absorbed = machine.absorbed_store_bytes
    click.echo(f"  {'absorbed stores':<16} {int(absorbed.value):>12,}  [{absorbed.confidence}] {absorbed.source}")


def _rate(rate: Rate, scale: float, unit: str, one: str) -> str:
    if rate.measured_per_s is not None:
        origin = f"measured {rate.measured_per_s / scale:.4g} x {rate.margin:g}"
    else:
        assert rate.per_clock and rate.published_per_s and rate.published_clock_hz
        origin = (
            f"{rate.per_clock:>9,.0f} {one}/clk, published {rate.published_per_s / scale:.5g} at "
            f"{rate.published_clock_hz / 1e9:g} GHz"
        )
    return f"{rate.per_s / scale:>9.5g} {unit}  {origin}  [{rate.confidence}] {rate.source}"
