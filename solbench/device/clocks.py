"""Stable clocks: one performance level, set, read back, and put back as found.

gfx1200 takes no clock ranges; STABLE_PEAK is its one stable level. Every other card, and every level that does not read
back, is labelled unlocked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from solbench.device.card import Card, Driver
from solbench.errors import UndecidedError

STABLE = {"gfx1200": "STABLE_PEAK"}
# MANUAL and DETERMINISM carry settings of their own, which setting the level again does not bring back.
RESTORABLE = ("AUTO", "LOW", "HIGH", "STABLE_STD", "STABLE_PEAK", "STABLE_MIN_MCLK", "STABLE_MIN_SCLK")
_RESTORE_WAITS_S = (0.0, 0.2, 1.0)


@dataclass(frozen=True)
class Clocks:
    """``found``: the level before. ``set``: the one asked for, None where it was left alone. ``why``: if unlocked."""

    found: str | None
    set: str | None
    locked: bool
    why: str | None


def plan(driver: Driver, card: Card) -> Clocks:
    """What :func:`engage` would do; nothing is touched. ``locked`` is false: nothing was read back yet."""
    wanted = STABLE.get(card.arch)
    if wanted is None:
        return Clocks(None, None, False, f"no stable level is known for {card.arch}")
    try:
        found = driver.level(card)
    except UndecidedError as error:
        return Clocks(None, None, False, str(error))
    if found not in RESTORABLE:
        return Clocks(found, None, False, f"level {found} could not be restored; set it to auto first")
    return Clocks(found, wanted, False, None)


def engage(driver: Driver, card: Card, planned: Clocks) -> Clocks:
    """Set the planned level and read it back."""
    if planned.set is None:
        return planned
    try:
        driver.set_level(card, planned.set)
        now = driver.level(card)
    except UndecidedError as error:
        return Clocks(planned.found, planned.set, False, str(error))
    why = None if now == planned.set else f"{planned.set} was set, but {now} is read back"
    return Clocks(planned.found, planned.set, why is None, why)


def restore(driver: Driver, card: Card, found: str) -> str | None:
    """Put the level back and read it back; None, or why that could not be verified."""
    why = "unknown"
    for wait_s in _RESTORE_WAITS_S:
        time.sleep(wait_s)
        try:
            if driver.level(card) == found:
                return None
            driver.set_level(card, found)
            now = driver.level(card)
        except UndecidedError as error:
            why = str(error)
            continue
        if now == found:
            return None
        why = f"{found} was set, but {now} is read back"
    return why
