"""``solbench device``: the cards of this machine, who owns them, and their clocks."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

_lock_dir = click.option(
    "--lock-dir", type=click.Path(path_type=Path), help="Folder of the locks.  [default: $GPU_LOCK_DIR]"
)
_uuid = click.option("--uuid", help="The card.  [default: $GPU_LOCK_UUID, else the only card]")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def device() -> None:
    """List the cards of this machine, own one, and put right what a killed owner left.

    docs/own-a-card.md leads through it.
    """


@device.command("list")
@_json
def list_(as_json: bool) -> None:
    """Print every card: UUID, name, architecture, PCI address, memory, and what it does right now.

    Exit 4 when there is none.
    """
    from solbench.cli import printable
    from solbench.device.card import drivers
    from solbench.errors import UnsupportedError

    found, absent = drivers()
    cards = [(card, driver.observe(card)) for driver in found for card in driver.cards()]
    if as_json:
        rows = [{**asdict(card), "observation": asdict(seen)} for card, seen in cards]
        click.echo(json.dumps({"cards": rows, "absent": [asdict(missing) for missing in absent]}, indent=2))
    for card, seen in cards:
        if not as_json:
            clock = "clocks unknown" if seen.graphics_hz is None else f"{seen.graphics_hz / 1e6:.0f} MHz"
            memory = "memory unknown" if card.memory_bytes is None else f"{card.memory_bytes / 2**30:.1f} GiB"
            level = f", level {seen.level}" if seen.level else ""
            click.echo(printable(f"{card.uuid}  {card.name}  {card.arch}  {card.pci}  {memory}  {clock}{level}"))
    if not cards:
        if as_json:
            click.get_current_context().exit(UnsupportedError.exit_code)
        why = "; ".join(f"{missing.platform}: {missing.why}" for missing in absent)
        raise UnsupportedError(f"no GPU that can be measured here ({why})")


@device.command(context_settings={"ignore_unknown_options": True})
@_uuid
@_lock_dir
@click.option("--timeout", type=click.FloatRange(min=0), default=60.0, show_default=True, help="Seconds to wait.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def lock(uuid: str | None, lock_dir: Path | None, timeout: float, command: tuple[str, ...]) -> None:
    """Run a command that owns a card, with stable clocks where the card has them.

    The exit code is the command's. What it starts ends with it; then the clocks are put back and verified. A receipt is
    left in the lock folder. `solbench` below the command borrows the card.
    """
    from solbench.cli import printable
    from solbench.device import locks
    from solbench.device.card import drivers, find
    from solbench.device.ownership import own
    from solbench.errors import InputError

    folder = locks.directory(lock_dir, os.environ)
    driver, card = find(drivers()[0], locks.uuid(uuid, os.environ))
    with own(driver, card, folder, timeout_s=timeout) as mine:
        state = mine.clocks.set if mine.clocks.locked else f"clocks unlocked: {mine.clocks.why}"
        click.echo(printable(f"solbench: {card.uuid}: {state}"), err=True)
        try:
            code = mine.run(command, os.environ)
        except OSError as error:
            raise InputError(command[0], f"cannot be started: {error.strerror}") from None
    click.get_current_context().exit(code)


@device.command()
@_uuid
@_lock_dir
def recover(uuid: str | None, lock_dir: Path | None) -> None:
    """Put a card back as a killed owner found it, verify that, and free it for the next owner.

    Exit 3 when it is owned, or cannot be restored.
    """
    from solbench.cli import printable
    from solbench.device import locks
    from solbench.device.card import drivers, find
    from solbench.device.ownership import recover as put_back

    folder = locks.directory(lock_dir, os.environ)
    driver, card = find(drivers()[0], locks.uuid(uuid, os.environ))
    left = put_back(driver, card, folder)
    if left is None:
        click.echo(f"{card.uuid}: nothing to recover")
        return
    level = f"level {left.level_found}, read back" if left.level_set else "its clocks were not changed"
    click.echo(printable(f"{card.uuid}: recovered from pid {left.owner.pid} ({left.owner.command}): {level}"))


@device.command()
@_lock_dir
@_json
def doctor(lock_dir: Path | None, as_json: bool) -> None:
    """Say what measuring on a card needs, what is there, and what to do about the rest.

    Exit 3 when something must be put right first, 4 when no card can be measured here.
    """
    from solbench.cli import printable
    from solbench.device.doctor import examine, exit_code

    findings = examine(os.environ, lock_dir)
    if as_json:
        click.echo(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            do = f"; {finding.do}" if finding.do else ""
            click.echo(printable(f"{finding.verdict:<11} {finding.where}: {finding.what}{do}"))
    click.get_current_context().exit(exit_code(findings))
